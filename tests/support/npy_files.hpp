#pragma once
// Bytes of .npy files and zip archives, as NumPy writes them.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zlib.h>

#include "tests/support/deflated.hpp"

namespace cudp {

template <class T>
std::string little_endian(T value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  return out;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Returns a .npy file. header: text of the Python dictionary.
inline std::string npy_with_header(const std::string& header, std::string_view content,
                                   char version = 1) {
  std::string padded = header;
  const std::size_t before = version == 1 ? 10 : 12;
  while ((before + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += version == 1 ? little_endian(static_cast<std::uint16_t>(padded.size()))
                      : little_endian(static_cast<std::uint32_t>(padded.size()));
  return out + padded + std::string(content);
}

/// Returns a .npy file. shape: as Python writes it, "(3, 2)".
inline std::string npy(const std::string& type, const std::string& shape,
                       std::string_view content) {
  return npy_with_header(
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", content);
}

/// Returns a .npy file of float32 numbers, [rows, values.size() / rows].
inline std::string npy_floats(std::size_t rows, const std::vector<float>& values) {
  return npy("<f4", "(" + std::to_string(rows) + ", " + std::to_string(values.size() / rows) + ")",
             bytes_of(values));
}

inline std::string npy_labels(const std::vector<std::int64_t>& values) {
  return npy("<i8", "(" + std::to_string(values.size()) + ",)", bytes_of(values));
}

/// Format of an archive. np.savez stores the members and np.savez_compressed deflates them, both
/// with 64-bit sizes in the local headers.
struct ZipStyle {
  bool deflate = false;
  bool wide = false;  ///< 64-bit sizes in the directory as well, with a 64-bit end record
  std::string comment{};
};

inline std::string zip(const std::vector<std::pair<std::string, std::string>>& members,
                       const ZipStyle& style = {}) {
  std::string out, directory;
  const auto u16 = [](std::size_t x) { return little_endian(static_cast<std::uint16_t>(x)); };
  const auto u32 = [](std::size_t x) { return little_endian(static_cast<std::uint32_t>(x)); };
  const auto u64 = [](std::size_t x) { return little_endian(static_cast<std::uint64_t>(x)); };
  for (const auto& [name, content] : members) {
    const std::string packed = style.deflate ? deflated(content, -MAX_WBITS) : content;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::size_t at = out.size();
    const std::string wide_sizes = u16(1) + u16(16) + u64(content.size()) + u64(packed.size());
    out += "PK\x03\x04" + u16(45) + u16(0) + u16(style.deflate ? 8 : 0) + u32(0) + u32(crc) +
           u32(0xffffffff) + u32(0xffffffff) + u16(name.size()) + u16(wide_sizes.size()) + name +
           wide_sizes + packed;
    const std::string extra =
        style.wide ? u16(1) + u16(24) + u64(content.size()) + u64(packed.size()) + u64(at)
                   : std::string();
    directory += "PK\x01\x02" + u16(45) + u16(45) + u16(0) + u16(style.deflate ? 8 : 0) + u32(0) +
                 u32(crc) + u32(style.wide ? 0xffffffff : packed.size()) +
                 u32(style.wide ? 0xffffffff : content.size()) + u16(name.size()) +
                 u16(extra.size()) + u16(0) + u16(0) + u16(0) + u32(0) +
                 u32(style.wide ? 0xffffffff : at) + name + extra;
  }
  const std::size_t at = out.size();
  const std::size_t n = members.size();
  out += directory;
  if (style.wide) {
    const std::size_t record = out.size();
    out += "PK\x06\x06" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(n) + u64(n) +
           u64(directory.size()) + u64(at);
    out += "PK\x06\x07" + u32(0) + u64(record) + u32(1);
  }
  return out + "PK\x05\x06" + u16(0) + u16(0) + u16(style.wide ? 0xffff : n) +
         u16(style.wide ? 0xffff : n) + u32(directory.size()) + u32(style.wide ? 0xffffffff : at) +
         u16(style.comment.size()) + style.comment;
}

}  // namespace cudp
