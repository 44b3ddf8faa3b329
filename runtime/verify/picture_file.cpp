#include "runtime/verify/picture_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include <zlib.h>

namespace cudp::verify {
namespace {

/// First bytes of a PNG file.
constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
/// Kinds of PNG chunks that a picture may have, at most once each, in addition to IHDR, IDAT and
/// IEND; and their maximum sizes [bytes], which are too small to hide a text.
constexpr std::pair<std::string_view, std::size_t> kOthers[] = {
    {"PLTE", 768}, {"tRNS", 256}, {"bKGD", 6}, {"sBIT", 4}, {"gAMA", 4}, {"pHYs", 9}};
/// Size of the content of IHDR, the chunk at the start of a PNG file that describes the picture
/// [bytes].
constexpr std::size_t kHeaderSize = 13;
constexpr std::uint32_t kMaxSide = 16384;  // [pixels]

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
  return n;
}

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// Returns the size of the uncompressed pixels [bytes] of a picture with this IHDR header; nullopt
/// if it is not the header of a plain picture.
std::optional<std::uint64_t> size_of_pixels(std::string_view header) {
  const std::uint64_t width = number_at(header, 0), height = number_at(header, 4);
  const auto depth = static_cast<unsigned char>(header[8]);
  const auto colour = static_cast<unsigned char>(header[9]);
  static constexpr std::array<unsigned, 7> kChannels = {1, 0, 3, 1, 2, 0, 4};  // by the colour type
  if (colour >= kChannels.size() || kChannels[colour] == 0 || depth == 0 || depth > 16)
    return std::nullopt;
  if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide) return std::nullopt;
  // Requires compression method 0, filter method 0 and no interlacing.
  if (header[10] != 0 || header[11] != 0 || header[12] != 0) return std::nullopt;
  return height * (1 + (width * kChannels[colour] * depth + 7) / 8);
}

/// Returns whether the bytes are one zlib stream that decompresses to exactly `size` bytes, with
/// nothing after it.
bool is_stream_of(std::string_view bytes, std::uint64_t size) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::vector<Bytef> part(std::size_t{1} << 16);
  std::uint64_t made = 0;
  int code = Z_OK;
  while (code == Z_OK && made <= size) {
    stream.next_out = part.data();
    stream.avail_out = static_cast<uInt>(part.size());
    code = inflate(&stream, Z_NO_FLUSH);
    made += part.size() - stream.avail_out;
  }
  const bool is_all = code == Z_STREAM_END && made == size && stream.avail_in == 0;
  inflateEnd(&stream);
  return is_all;
}

}  // namespace

std::string check_picture(std::string_view bytes) {
  if (!bytes.starts_with(kSignature)) return "expected a PNG picture, found something else";
  bytes.remove_prefix(kSignature.size());
  std::set<std::string_view> seen;
  std::optional<std::uint64_t> size;
  std::string pixels;
  for (;;) {
    if (bytes.size() < 12) return "expected a whole picture, found one that is cut short";
    const std::size_t length = number_at(bytes, 0);
    if (length > bytes.size() - 12) return "expected a whole picture, found one that is cut short";
    const std::string_view kind = bytes.substr(4, 4), content = bytes.substr(8, length);
    if (number_at(bytes, 8 + length) != checksum_of(bytes.substr(4, 4 + length)))
      return "expected the checksum of its parts, found another";
    bytes.remove_prefix(12 + length);
    const bool is_first = seen.empty(), is_new = seen.insert(kind).second;
    if (is_first != (kind == "IHDR")) return "expected its header first, and once, found another";
    if (kind == "IHDR") {
      if (length == kHeaderSize) size = size_of_pixels(content);
      if (!size) return "expected the header of a plain picture, found another";
    } else if (kind == "IDAT") {
      pixels += content;
    } else if (kind == "IEND") {
      if (length != 0 || !bytes.empty())
        return "expected nothing after the picture, found more bytes";
      if (!is_stream_of(pixels, *size)) return "expected its pixels and no more, found others";
      return "";
    } else {
      const auto* const other =
          std::ranges::find(kOthers, kind, &std::pair<std::string_view, std::size_t>::first);
      if (other == std::end(kOthers) || !is_new || length > other->second)
        return "expected the parts that gnuplot writes, found one of another kind";
    }
  }
}

}  // namespace cudp::verify
