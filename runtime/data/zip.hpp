#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Bytes with random access, and a name for error messages: a file, or a buffer.
class RandomAccessBytes {
 public:
  explicit RandomAccessBytes(std::string name) : name_(std::move(name)) {}
  virtual ~RandomAccessBytes() = default;
  RandomAccessBytes(const RandomAccessBytes&) = delete;
  RandomAccessBytes& operator=(const RandomAccessBytes&) = delete;
  RandomAccessBytes(RandomAccessBytes&&) = delete;
  RandomAccessBytes& operator=(RandomAccessBytes&&) = delete;

  const std::string& name() const { return name_; }
  virtual std::uint64_t size() const = 0;
  /// Reads out.size() bytes at offset `at`. Throws InputError if they cannot be read.
  virtual void read(std::uint64_t at, std::span<std::uint8_t> out) const = 0;

 private:
  std::string name_;
};

/// Opens a file for random access. Throws InputError if it cannot be read.
std::unique_ptr<RandomAccessBytes> open_random_access(const std::filesystem::path& path);
/// Makes a random-access reader of bytes in memory, which must outlive it.
std::unique_ptr<RandomAccessBytes> memory_random_access(std::string name,
                                                        std::span<const std::uint8_t> bytes);

/// A zip archive in one file, not encrypted, with 32- or 64-bit sizes; its members are stored or
/// deflated. Headers are not trusted: an offset outside the file is an error, and memory is
/// allocated only for bytes that exist.
class ZipArchive {
 public:
  /// Reads the archive's directory at the end of the file. bytes must outlive this object. Throws
  /// InputError if it is not a valid zip archive.
  explicit ZipArchive(const RandomAccessBytes& bytes);

  /// Returns the names of the members, in the order of the directory.
  std::vector<std::string> names() const;
  bool has(std::string_view name) const;
  /// Opens a member of the archive for reading. The returned reader must not outlive this object.
  /// When it reaches the member's last byte, it checks the size and the CRC-32. Throws InputError
  /// if there is no such member.
  std::unique_ptr<ByteReader> open(std::string_view name) const;

 private:
  /// A member of the archive, as the directory describes it.
  struct Member {
    std::string name;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0;    // size in the file [bytes]
    std::uint64_t unpacked = 0;  // size of the content [bytes]
    std::uint64_t header = 0;    // offset of its local header
  };
  /// Offset and size of the archive's directory [bytes], and its number of entries.
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

  const RandomAccessBytes& bytes_;
  std::vector<Member> members_;
};

}  // namespace cudp
