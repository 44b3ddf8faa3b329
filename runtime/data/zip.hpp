#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Bytes that can be read at any place, with a name for error lines: a file, or a buffer.
class PlacedBytes {
 public:
  explicit PlacedBytes(std::string name) : name_(std::move(name)) {}
  virtual ~PlacedBytes() = default;
  PlacedBytes(const PlacedBytes&) = delete;
  PlacedBytes& operator=(const PlacedBytes&) = delete;
  PlacedBytes(PlacedBytes&&) = delete;
  PlacedBytes& operator=(PlacedBytes&&) = delete;

  const std::string& name() const { return name_; }
  virtual std::uint64_t size() const = 0;
  /// Fills `out` with the bytes from `at` on, all of which must be there. Throws InputError where
  /// they cannot be read.
  virtual void read(std::uint64_t at, std::span<std::uint8_t> out) const = 0;

 private:
  std::string name_;
};

/// Throws InputError if the file cannot be read.
std::unique_ptr<PlacedBytes> open_placed(const std::filesystem::path& path);
/// The bytes must outlive it.
std::unique_ptr<PlacedBytes> memory_placed(std::string name, std::span<const std::uint8_t> bytes);

/// A zip archive, with 64-bit sizes or without; in one file, not encrypted, its members stored or
/// deflated. Nothing that its headers say is taken on trust: what lies outside the file is refused,
/// and memory follows the bytes that are there.
class ZipArchive {
 public:
  /// Reads the directory at the end. bytes must outlive this. Throws InputError.
  explicit ZipArchive(const PlacedBytes& bytes);

  /// Names of the members, in the directory's order.
  std::vector<std::string> names() const;
  bool has(std::string_view name) const;
  /// A member's content; the reader must not outlive this. Its size and CRC-32 are checked when the
  /// last byte is read. Throws InputError where there is none of this name.
  std::unique_ptr<ByteReader> open(std::string_view name) const;

 private:
  struct Member {
    std::string name;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0;    // bytes in the file
    std::uint64_t unpacked = 0;  // bytes of the content
    std::uint64_t header = 0;    // where its local header is
  };
  struct Directory {
    std::uint64_t at = 0;
    std::uint64_t size = 0;
    std::uint64_t members = 0;
  };

  Directory find_directory() const;
  Directory wide_directory(std::uint64_t end_record) const;
  void read_directory(const Directory& directory);
  void read_wide_sizes(Member& member, std::span<const std::uint8_t> extra) const;
  const Member* find(std::string_view name) const;

  const PlacedBytes& bytes_;
  std::vector<Member> members_;
};

}  // namespace cudp
