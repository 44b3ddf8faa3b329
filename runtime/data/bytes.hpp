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

/// A stream of bytes from a file or a buffer, with a name for error messages. Derived classes
/// decompress the bytes if necessary.
class ByteReader {
 public:
  explicit ByteReader(std::string name) : name_(std::move(name)) {}
  virtual ~ByteReader() = default;
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ByteReader(ByteReader&&) = delete;
  ByteReader& operator=(ByteReader&&) = delete;

  const std::string& name() const { return name_; }
  /// Returns the number of bytes read or skipped so far.
  std::uint64_t position() const { return position_; }

  /// Reads bytes into `out` and returns how many were read: fewer than out.size() only at the end
  /// of the stream. Throws InputError if the stream is damaged or cut short.
  std::size_t read(std::span<std::uint8_t> out);

  /// Skips up to `count` bytes and returns how many it skipped: fewer than `count` only at the end
  /// of the stream.
  std::uint64_t skip(std::uint64_t count);

  /// Returns how many bytes of memory a caller may allocate for the rest of the stream before it
  /// reads them. The number does not come from a header in the stream, which may be wrong. The
  /// stream may have more bytes than this.
  virtual std::uint64_t reservable() const = 0;
  /// Returns whether the stream reads a file directly, without decompressing it, so that position()
  /// is an offset in the file.
  virtual bool is_file() const { return false; }

 private:
  virtual std::size_t fill(std::span<std::uint8_t> out) = 0;
  virtual std::uint64_t leave_out(std::uint64_t count);

  std::string name_;
  std::uint64_t position_ = 0;
};

/// How the program recognises that a file is compressed: by the file's first bytes, or by its name.
enum class Compression {
  by_content,  ///< the file begins with the magic number of gzip or xz
  /// The file's name ends in .gz or .xz. For files whose content must not decide how they are read,
  /// because the first bytes may belong to a private row.
  by_name
};

/// Opens a file. If the file is compressed with gzip or xz, the reader decompresses it. progress:
/// receives the fraction of the file that has been read; must outlive the reader; may be null.
/// compression: how to recognise a compressed file. Throws InputError if the file cannot be read.
std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, Busy* progress = nullptr,
                                       Compression compression = Compression::by_content);

/// Makes a reader of bytes in memory. Decompresses them if they begin with the magic number of gzip
/// or xz. The bytes must outlive the reader.
std::unique_ptr<ByteReader> memory_bytes(std::string name, std::span<const std::uint8_t> bytes);

/// Reads up to `count` bytes and appends them to `to`. Returns how many it read: fewer than `count`
/// only at the end of the stream. The memory of `to` grows as bytes arrive, so that a wrong count
/// in a file's header cannot exhaust memory.
std::uint64_t append_bytes(ByteReader& from, std::uint64_t count, std::vector<std::uint8_t>& to);

/// Throws InputError if the stream of `reader` has more bytes, or if the checksum at its end is
/// wrong. after: description, for the message, of what was read before, e.g. "the last number".
void expect_end(ByteReader& reader, std::string_view after);

/// Throws InputError with the message "FILE, PLACE: expected ..., found ...", made of the four
/// arguments. If `place`, the position in the file, is empty, the message is "FILE: expected ...,
/// found ...".
[[noreturn]] void bad_input(std::string_view file, std::string_view place,
                            std::string_view expected, std::string_view found);

/// Returns text of unknown origin for an error message: in quotes, cut to `longest` characters,
/// with everything that is not printable UTF-8 replaced by "?", so that it cannot control a
/// terminal.
std::string shown(std::string_view text, std::size_t longest = 40);

}  // namespace cudp
