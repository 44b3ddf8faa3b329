#include <gtest/gtest.h>

#include "runtime/base/busy.hpp"
#include "runtime/data/bytes.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

std::span<const std::uint8_t> as_bytes(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

/// Everything in the stream, read in pieces of `step`.
std::string read_all(const std::string& file, std::size_t step = 1000) {
  const auto reader = memory_bytes("f", as_bytes(file));
  std::string out;
  for (;;) {
    std::vector<std::uint8_t> piece(step);
    const std::size_t n = reader->read(piece);
    out.append(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < step) break;
  }
  EXPECT_EQ(reader->position(), out.size());
  return out;
}

/// Compressible, but not to nothing.
std::string sample(std::size_t size) {
  std::string s(size, '\0');
  std::uint32_t x = 1;
  for (char& c : s) c = static_cast<char>((x = x * 1664525u + 1013904223u) >> 29);
  return s;
}

TEST(Bytes, PlainGzipAndXzReadTheSame) {
  for (const std::size_t size : {0u, 1u, 999u, 1000u, 1001u, 500'000u}) {
    const std::string text = sample(size);
    for (const std::size_t step : {1u, 7u, 1000u, 1'000'000u}) {
      if (step == 1 && size > 2000) continue;
      EXPECT_EQ(read_all(text, step), text);
      EXPECT_EQ(read_all(gzipped(text), step), text);
      EXPECT_EQ(read_all(xzipped(text), step), text);
    }
  }
}

TEST(Bytes, SeveralGzipMembersAndXzStreamsAreOneFile) {
  EXPECT_EQ(read_all(gzipped("abc") + gzipped("") + gzipped("de")), "abcde");
  EXPECT_EQ(read_all(xzipped("abc") + xzipped("de")), "abcde");
}

TEST(Bytes, EveryTruncationIsNoticed) {
  const std::string text = sample(3000);
  for (const std::string& file : {gzipped(text), xzipped(text)})
    for (std::size_t n = 6; n < file.size(); ++n)
      EXPECT_NE(refusal_of([&] { read_all(file.substr(0, n)); }), "") << n;
}

TEST(Bytes, DamageIsNeverReadAsData) {
  const std::string text = sample(3000);
  for (const std::string& file : {gzipped(text), xzipped(text)}) {
    std::size_t refused = 0;
    for (std::size_t i = 6; i < file.size(); ++i) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      std::string out;
      const bool refusal = !refusal_of([&] { out = read_all(bad); }).empty();
      EXPECT_TRUE(refusal || out == text) << i;  // a header's time and padding bits mean nothing
      refused += refusal ? 1 : 0;
    }
    EXPECT_GE(refused, file.size() - 20);
  }
}

TEST(Bytes, ErrorLines) {
  const std::string gz = gzipped("abc"), xz = xzipped("abc");
  EXPECT_EQ(refusal_of([&] { read_all(gz.substr(0, gz.size() - 3)); }),
            "f, byte " + std::to_string(gz.size() - 3) +
                " of the compressed file: expected the rest of a gzip stream, found the end of the "
                "file (truncated?)");
  EXPECT_EQ(
      refusal_of([&] { read_all(gz + "x"); }),
      "f, byte " + std::to_string(gz.size()) +
          " of the compressed file: expected the end of the file after the gzip stream, found "
          "trailing bytes");
  std::string crc = gz;
  crc[gz.size() - 8] = static_cast<char>(crc[gz.size() - 8] ^ 1);
  EXPECT_EQ(refusal_of([&] { read_all(crc); }),
            "f, byte " + std::to_string(gz.size() - 4) +
                " of the compressed file: expected gzip data, found damage (incorrect data check)");
  EXPECT_EQ(refusal_of([&] { read_all(xz.substr(0, xz.size() - 3)); }),
            "f, byte " + std::to_string(xz.size() - 3) +
                " of the compressed file: expected the rest of an xz stream, found the end of the "
                "file (truncated?)");
  EXPECT_NE(refusal_of([&] {
              read_all(xz + std::string(12, 'x'));
            }).find("expected xz data, found damage or trailing bytes"),
            std::string::npos);
}

TEST(Bytes, FilesThatCannotBeRead) {
  const TempFolder dir;
  EXPECT_EQ(refusal_of([&] { open_bytes(dir.path() + "/no"); }, dir.path()),
            "DIR/no: expected a file that can be read, found No such file or directory");
  EXPECT_EQ(refusal_of([&] { open_bytes(dir.path()); }, dir.path()),
            "DIR: expected a file, found a folder");
  EXPECT_EQ(refusal_of([&] { open_bytes("/dev/null"); }),
            "/dev/null: expected a file, found something else");
}

TEST(Bytes, AFileOnDiskIsReadWhole) {
  const TempFolder dir;
  const std::string text = sample(300'000);
  for (const std::string& file : {text, gzipped(text), xzipped(text)}) {
    const auto reader = open_bytes(dir.write("f", file));
    std::vector<std::uint8_t> bytes;
    EXPECT_EQ(append_bytes(*reader, text.size(), bytes), text.size());
    expect_end(*reader, "the text");
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
  }
}

/// Of a packed file, the share of what lies on the disk.
TEST(Bytes, TellHowMuchOfAFileHasBeenRead) {
  const TempFolder dir;
  const std::string text = sample(2'000'000);
  for (const std::string& file : {dir.write("plain", text), dir.write("packed", gzipped(text))}) {
    Busy busy("reading", Busy::Shown::never);
    const auto reader = open_bytes(file, &busy);
    EXPECT_TRUE(busy.line().starts_with("reading: 0 s")) << busy.line();
    std::vector<std::uint8_t> piece(text.size() / 2);
    EXPECT_EQ(reader->read(piece), piece.size());
    const int share = std::stoi(busy.line().substr(std::string("reading: ").size()));
    EXPECT_GE(share, 49) << file;
    EXPECT_LE(share, 70) << file;
    EXPECT_EQ(reader->read(piece), piece.size());
    expect_end(*reader, "all of it");
    EXPECT_TRUE(busy.line().starts_with("reading: 100 % after ")) << busy.line();
  }
}

TEST(Bytes, AFalseCountCostsNoMemory) {
  constexpr std::uint64_t kClaimed = std::uint64_t{1} << 40;
  const std::string text = sample(100'000);
  for (const std::string& file : {text, gzipped(text), xzipped(text)}) {
    const auto reader = memory_bytes("f", as_bytes(file));
    std::vector<std::uint8_t> bytes;
    EXPECT_EQ(append_bytes(*reader, kClaimed, bytes), text.size());
    EXPECT_LE(bytes.capacity(), 4'000'000u);
  }
  const auto reader = memory_bytes("f", as_bytes(text));
  std::vector<std::uint8_t> bytes;
  append_bytes(*reader, text.size(), bytes);
  EXPECT_EQ(bytes.capacity(), text.size());  // a true count is reserved at once
}

TEST(Bytes, XzThatNeedsGigabytesIsRefused) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 6);
  options.dict_size = std::uint32_t{1} << 30;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  // Only the headers matter: a stream header and a block header that declares the dictionary.
  std::string file(LZMA_STREAM_HEADER_SIZE, '\0');
  lzma_stream_flags flags{};
  flags.check = LZMA_CHECK_CRC32;
  ASSERT_EQ(lzma_stream_header_encode(&flags, reinterpret_cast<std::uint8_t*>(file.data())),
            LZMA_OK);
  lzma_block block{};
  block.check = LZMA_CHECK_CRC32;
  block.compressed_size = LZMA_VLI_UNKNOWN;
  block.uncompressed_size = LZMA_VLI_UNKNOWN;
  block.filters = const_cast<lzma_filter*>(filters);
  ASSERT_EQ(lzma_block_header_size(&block), LZMA_OK);
  std::string header(block.header_size, '\0');
  ASSERT_EQ(lzma_block_header_encode(&block, reinterpret_cast<std::uint8_t*>(header.data())),
            LZMA_OK);
  EXPECT_NE(refusal_of([&] { read_all(file + header + std::string(100, '\1')); })
                .find("expected an xz stream that unpacks in 256 MiB of memory, found one that "
                      "needs more"),
            std::string::npos);
}

TEST(Bytes, TextOfUnknownOriginIsShownSafely) {
  EXPECT_EQ(shown("a\nb\x1b[31m\xff"), "'a?b?[31m?'");
  EXPECT_EQ(shown(std::string(50, 'x')), std::string("'").append(40, 'x').append("...'"));
}

}  // namespace
}  // namespace cudp
