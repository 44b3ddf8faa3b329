#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

class Busy;

/// A stream of bytes with a name for error lines: a file, a buffer, or either of them decompressed.
class ByteReader {
 public:
  explicit ByteReader(std::string name) : name_(std::move(name)) {}
  virtual ~ByteReader() = default;
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ByteReader(ByteReader&&) = delete;
  ByteReader& operator=(ByteReader&&) = delete;

  const std::string& name() const { return name_; }
  /// Bytes given so far.
  std::uint64_t position() const { return position_; }

  /// Fills `out`; fewer bytes than asked for only at the end of the stream. Throws InputError where
  /// the stream is damaged or cut short.
  std::size_t read(std::span<std::uint8_t> out);

  /// Leaves bytes out, fewer than asked for only at the end of the stream; returns how many.
  std::uint64_t skip(std::uint64_t count);

  /// How many bytes may be reserved before they arrive, whatever a header inside claims. A stream
  /// may give more.
  virtual std::uint64_t reservable() const = 0;

 private:
  virtual std::size_t fill(std::span<std::uint8_t> out) = 0;
  virtual std::uint64_t leave_out(std::uint64_t count);

  std::string name_;
  std::uint64_t position_ = 0;
};

/// A file, decompressed if its first bytes say gzip or xz. progress: hears which share of the file
/// has been read, and outlives the reader; null: none does. Throws InputError if it cannot be read.
std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, Busy* progress = nullptr);

/// A reader of bytes in memory, which must outlive it.
std::unique_ptr<ByteReader> memory_bytes(std::string name, std::span<const std::uint8_t> bytes);

/// Appends `count` bytes to `to` and returns how many there were. Memory grows as bytes arrive, so
/// a false count costs none; a true one is reserved at once.
std::uint64_t append_bytes(ByteReader& from, std::uint64_t count, std::vector<std::uint8_t>& to);

/// Throws InputError unless the stream ends here, its checksum included.
void expect_end(ByteReader& reader, std::string_view after);

/// Throws InputError "FILE, PLACE: expected ..., found ..."; an empty place is left out.
[[noreturn]] void bad_input(std::string_view file, std::string_view place,
                            std::string_view expected, std::string_view found);

/// Text of unknown origin for an error line: in quotes, cut to `longest` characters, and with
/// everything that is not printable UTF-8 replaced, so that it cannot steer a terminal.
std::string shown(std::string_view text, std::size_t longest = 40);

}  // namespace cudp
