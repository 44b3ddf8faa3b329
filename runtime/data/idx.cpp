#include "runtime/data/idx.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

namespace cudp {
namespace {

constexpr std::uint32_t kImagesMagic = 2051;  // unsigned bytes, three dimensions
constexpr std::uint32_t kLabelsMagic = 2049;  // unsigned bytes, one dimension
/// Maximum number of images or labels of a file.
constexpr std::uint32_t kMaxExamples = 0x7fffffff;
/// Maximum height and width of an image [pixels].
constexpr std::uint32_t kLongestSide = 4096;

/// Reads the header at the start of an IDX file, `words` big-endian words of 32 bits, and checks
/// the magic number, which is the first of them. what: content of the file for messages, "images"
/// or "labels".
template <std::size_t words>
std::array<std::uint32_t, words> read_header(ByteReader& reader, std::uint32_t magic,
                                             const char* what) {
  std::array<std::uint8_t, 4 * words> raw{};
  const std::size_t n = reader.read(raw);
  if (n < raw.size())
    bad_input(reader.name(), "byte 0", "an IDX header of " + std::to_string(raw.size()) + " bytes",
              std::to_string(n) + " bytes");
  std::array<std::uint32_t, words> header{};
  for (std::size_t i = 0; i < raw.size(); ++i) header[i / 4] = header[i / 4] << 8 | raw[i];
  if (header[0] != magic)
    bad_input(reader.name(), "byte 0",
              "the magic number " + std::to_string(magic) + " of IDX " + what,
              std::to_string(header[0]));
  return header;
}

void check_range(const ByteReader& reader, int byte, const char* what, std::uint32_t value,
                 std::uint32_t min, std::uint32_t max) {
  if (value < min || value > max)
    bad_input(reader.name(), "byte " + std::to_string(byte),
              std::to_string(min) + " to " + std::to_string(max) + " " + what,
              std::to_string(value));
}

/// Reads the content of an IDX file after its header, `whole` items (images or labels) of `bytes`
/// bytes each. Skips the items of other ranks. For the items of this rank's share, calls keep(n),
/// which must read the next n bytes and return how many it could read. Throws InputError if the
/// file is too short or too long. what: what the items are, for messages. Keep: type of the
/// function keep().
template <class Keep>
void read_body(ByteReader& reader, std::uint64_t whole, std::uint64_t bytes, Share share,
               const char* what, const Keep& keep) {
  const ExampleRange range = share.of(whole);
  const std::uint64_t start = reader.position();
  std::uint64_t n = reader.skip(range.begin * bytes);
  if (n == range.begin * bytes) n += keep(range.size() * bytes);
  if (n == range.end * bytes) n += reader.skip((whole - range.end) * bytes);
  if (n < whole * bytes)
    bad_input(reader.name(), "byte " + std::to_string(start + n),
              std::to_string(whole * bytes) + " bytes of " + what,
              "the end of the file after " + std::to_string(n));
  expect_end(reader, what);
}

/// Copies the next `count` bytes of `reader` to the file `to`. Requires that they are whole images
/// of `bytes` bytes each. Returns the number of bytes that could be read: fewer than `count` if the
/// stream ends early.
std::uint64_t write_images(ByteReader& reader, std::uint64_t count, std::uint64_t bytes,
                           RowFileWriter& to) {
  const std::uint64_t images = std::max<std::uint64_t>(1, (std::uint64_t{1} << 20) / bytes);
  std::vector<std::uint8_t> part(images * bytes);
  for (std::uint64_t done = 0; done < count;) {
    const std::span next =
        std::span(part).first(std::min<std::uint64_t>(part.size(), count - done));
    const std::size_t n = reader.read(next);
    done += n;
    if (n < next.size()) return done;
    to.append(next);
  }
  return count;
}

}  // namespace

IdxImages read_idx_images(ByteReader& reader, Share share, const RowStorage& storage) {
  const auto header = read_header<4>(reader, kImagesMagic, "images");
  check_range(reader, 4, "images", header[1], 0, kMaxExamples);
  check_range(reader, 8, "rows", header[2], 1, kLongestSide);
  check_range(reader, 12, "columns", header[3], 1, kLongestSide);
  IdxImages images;
  images.rows = static_cast<int>(header[2]);
  images.columns = static_cast<int>(header[3]);
  images.whole = header[1];
  // Size of an image [bytes]. All images of a file together have at most 2^55 bytes, so the
  // products below do not overflow.
  const std::uint64_t bytes = std::uint64_t{header[2]} * header[3];
  const ExampleRange range = share.of(images.whole);
  const std::uint64_t first = reader.position() + range.begin * bytes;
  std::optional<RowFileWriter> copy;
  const bool in_file = storage.in_file(range.size() * bytes);
  if (in_file && !reader.is_file()) copy.emplace(storage.folder, reader.name(), bytes);
  read_body(reader, images.whole, bytes, share, "pixels", [&](std::uint64_t count) {
    if (copy) return write_images(reader, count, bytes, *copy);
    return in_file ? reader.skip(count) : append_bytes(reader, count, images.pixels);
  });
  if (copy)
    images.file = copy->finish();
  else if (in_file)
    images.file = open_rows(reader.name(), first, bytes, range.size(), storage.folder);
  return images;
}

IdxLabels read_idx_labels(ByteReader& reader, Share share) {
  const auto header = read_header<2>(reader, kLabelsMagic, "labels");
  check_range(reader, 4, "labels", header[1], 0, kMaxExamples);
  IdxLabels labels{.whole = header[1]};
  read_body(reader, header[1], 1, share, "labels",
            [&](std::uint64_t count) { return append_bytes(reader, count, labels.labels); });
  return labels;
}

}  // namespace cudp
