// Random streams against published answers and against an oracle that shares no code with them.
#include "tests/support/reference/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random/normal_math.hpp"
#include "kernels/random/philox.hpp"
#include "tests/support/random_backends.hpp"

namespace cudp {
namespace {

// RFC 8439's test key, 00 01 02 .. 1f.
RandomKey rfc_key() {
  RandomKey key{};
  for (std::uint32_t i = 0; i < 8; ++i) key.words[i] = 0x03020100 + 0x04040404 * i;
  return key;
}

RandomStream stream(Generator generator, Stream purpose = Stream::noise, std::uint64_t step = 5) {
  return {generator, rfc_key(), purpose, step};
}

double ulps(float got, long double want) {
  int exponent = 0;
  std::frexp(static_cast<double>(want), &exponent);
  return std::fabs(static_cast<double>(got - want)) / std::ldexp(1.0, exponent - 24);
}

/// Lengths of ranges: whole tiles, parts of them, and one number more or fewer.
constexpr int kRangeLengths[] = {0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1024};

class RandomWords : public testing::TestWithParam<RandomBackend> {
 protected:
  static std::vector<std::uint32_t> words(const RandomStream& s, std::int64_t begin,
                                          std::int64_t end) {
    std::vector<std::uint32_t> w(static_cast<std::size_t>(end - begin));
    GetParam().fill_words(s, begin, end, w.data());
    return w;
  }
  // Word r of generator block n, from the tile that holds it.
  static std::uint32_t block_word(const RandomStream& s, std::int64_t n, std::int64_t r) {
    return words(s, n / 16 * 256, n / 16 * 256 + 256)[r * 16 + n % 16];
  }
};

TEST_P(RandomWords, Rfc8439BlockFunction) {  // section 2.3.2
  const std::uint32_t want[16] = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                  0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                  0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                  0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  const RandomStream s{Generator::chacha20, rfc_key(), static_cast<Stream>(0x09000000), 0x4a000000};
  for (int r = 0; r < 16; ++r) EXPECT_EQ(block_word(s, 1, r), want[r]) << "word " << r;
}

TEST_P(RandomWords, Rfc8439Encryption) {  // section 2.4.2: the keystream of blocks 1 and 2
  const std::string plain =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.";
  const unsigned char cipher[] = {
      0x6e, 0x2e, 0x35, 0x9a, 0x25, 0x68, 0xf9, 0x80, 0x41, 0xba, 0x07, 0x28, 0xdd, 0x0d, 0x69,
      0x81, 0xe9, 0x7e, 0x7a, 0xec, 0x1d, 0x43, 0x60, 0xc2, 0x0a, 0x27, 0xaf, 0xcc, 0xfd, 0x9f,
      0xae, 0x0b, 0xf9, 0x1b, 0x65, 0xc5, 0x52, 0x47, 0x33, 0xab, 0x8f, 0x59, 0x3d, 0xab, 0xcd,
      0x62, 0xb3, 0x57, 0x16, 0x39, 0xd6, 0x24, 0xe6, 0x51, 0x52, 0xab, 0x8f, 0x53, 0x0c, 0x35,
      0x9f, 0x08, 0x61, 0xd8, 0x07, 0xca, 0x0d, 0xbf, 0x50, 0x0d, 0x6a, 0x61, 0x56, 0xa3, 0x8e,
      0x08, 0x8a, 0x22, 0xb6, 0x5e, 0x52, 0xbc, 0x51, 0x4d, 0x16, 0xcc, 0xf8, 0x06, 0x81, 0x8c,
      0xe9, 0x1a, 0xb7, 0x79, 0x37, 0x36, 0x5a, 0xf9, 0x0b, 0xbf, 0x74, 0xa3, 0x5b, 0xe6, 0xb4,
      0x0b, 0x8e, 0xed, 0xf2, 0x78, 0x5e, 0x42, 0x87, 0x4d};
  ASSERT_EQ(plain.size(), sizeof cipher);
  const RandomStream s{Generator::chacha20, rfc_key(), static_cast<Stream>(0), 0x4a000000};
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto block = static_cast<std::int64_t>(1 + i / 64);
    const std::uint32_t word = block_word(s, block, static_cast<std::int64_t>(i % 64 / 4));
    EXPECT_EQ(static_cast<unsigned char>(plain[i]) ^ (word >> 8 * (i % 4) & 0xff), cipher[i]) << i;
  }
}

TEST_P(RandomWords, AreTheOracles) {
  for (const Generator g : kEveryGenerator)
    for (const Stream purpose : {Stream::sampling, Stream::noise})
      for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{0xfffffffe}}) {
        const RandomStream s = stream(g, purpose, step);
        const auto w = words(s, 0, 1024);
        for (std::size_t i = 0; i < w.size(); ++i) ASSERT_EQ(w[i], reference::word(s, i)) << i;
      }
  const RandomStream late = stream(Generator::chacha20, Stream::noise, 0x123456789abcdef0);
  const auto w = words(late, 0, 256);
  for (std::size_t i = 0; i < w.size(); ++i) ASSERT_EQ(w[i], reference::word(late, i)) << i;
}

// Where block numbers, and Philox counters, no longer fit in a signed or in 32 bits.
TEST_P(RandomWords, AreTheOraclesFarIntoTheStream) {
  for (const Generator g : kEveryGenerator)
    for (const std::int64_t begin :
         {std::int64_t{1} << 34, (std::int64_t{1} << 35) - 256, (std::int64_t{1} << 36) - 512}) {
      const RandomStream s = stream(g);
      const auto w = words(s, begin, begin + 512);
      for (std::size_t i = 0; i < w.size(); ++i)
        ASSERT_EQ(w[i], reference::word(s, static_cast<std::uint64_t>(begin) + i))
            << begin << " + " << i;
    }
}

TEST_P(RandomWords, AnyRangeIsAPartOfTheSameStream) {
  for (const Generator g : kEveryGenerator) {
    const RandomStream s = stream(g);
    const auto whole = words(s, 0, 2048);
    for (const int begin : {0, 256, 768, 1024})
      for (const int length : kRangeLengths) {
        // a loud number after the end shows a write past it
        std::vector<std::uint32_t> w(length + 1, 12345);
        GetParam().fill_words(s, begin, begin + length, w.data());
        for (int i = 0; i < length; ++i) ASSERT_EQ(w[i], whole[begin + i]) << begin << " + " << i;
        ASSERT_EQ(w[length], 12345u);
      }
  }
}

TEST_P(RandomWords, DifferInKeyStreamAndStep) {
  for (const Generator g : kEveryGenerator) {
    std::vector<RandomStream> streams = {stream(g), stream(g, Stream::sampling),
                                         stream(g, Stream::initial_weights),
                                         stream(g, Stream::noise, 6)};
    for (int word = 0; word < (g == Generator::chacha20 ? 8 : 2); ++word) {
      streams.push_back(stream(g));
      streams.back().key.words[word] ^= 0x80000000;
    }
    if (g == Generator::chacha20)
      streams.push_back(stream(g, Stream::noise, 5 + (std::uint64_t{1} << 32)));
    for (std::size_t a = 0; a < streams.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const auto x = words(streams[a], 0, 1024);
        const auto y = words(streams[b], 0, 1024);
        int same = 0;
        for (std::size_t i = 0; i < x.size(); ++i) same += x[i] == y[i];
        EXPECT_LE(same, 1) << a << " and " << b;  // two equal words: once in 3e7 pairs of streams
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomWords, testing::ValuesIn(random_backends()),
                         [](const auto& i) { return i.param.name; });

#ifndef CUDP_TEST_ON_GPU
class RandomNormals : public testing::TestWithParam<RandomBackend> {};

TEST_P(RandomNormals, AnyRangeIsAPartOfTheSameStream) {
  for (const Generator g : kEveryGenerator) {
    const RandomStream s = stream(g);
    std::vector<float> whole(2048);
    GetParam().fill_normals(s, 0, 2048, whole.data());
    for (const int begin : {0, 256, 768, 1024})
      for (const int length : kRangeLengths) {
        std::vector<float> z(length + 1, 12345.0f);
        GetParam().fill_normals(s, begin, begin + length, z.data());
        for (int i = 0; i < length; ++i) ASSERT_EQ(z[i], whole[begin + i]) << begin << " + " << i;
        ASSERT_EQ(z[length], 12345.0f);
      }
  }
}

TEST_P(RandomNormals, AreTheOraclesToFourUlp) {
  const std::int64_t n = 1 << 18;
  for (const Generator g : kEveryGenerator) {
    const RandomStream s = stream(g);
    std::vector<std::uint32_t> w(n);
    GetParam().fill_words(s, 0, n, w.data());
    std::vector<float> z(w.size());
    GetParam().fill_normals(s, 0, n, z.data());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const std::size_t even = i - i / 16 % 2 * 16;
      const reference::NormalPair pair = reference::normals(w[even], w[even + 16]);
      ASSERT_TRUE(ulps(z[i], i == even ? pair.even : pair.odd) <= 4) << i << ": " << z[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomNormals, testing::ValuesIn(cpu_backends()),
                         [](const auto& i) { return i.param.name; });
#endif

// Random123, kat_vectors: philox4x32, 10 rounds.
TEST(Philox, Random123KnownAnswers) {
  struct Case {
    std::uint32_t counter[4];
    std::uint32_t key[2];
    std::uint32_t want[4];
  };
  const Case cases[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff},
                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0},
                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case& c : cases) {
    std::uint32_t got[4] = {c.counter[0], c.counter[1], c.counter[2], c.counter[3]};
    philox4x32_10<ScalarLanes>(got, c.key[0], c.key[1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got[i], c.want[i]) << i;
  }
}

// The words a stream may hold but a test's length of it does not: both ends of the radius, the
// halves' seam, and angles beside every axis and diagonal.
TEST(BoxMuller, CornersToFourUlp) {
  const std::uint32_t radii[] = {0,          1,          2,          255,        0x007fffff,
                                 0x01000000, 0x3fffffff, 0x40000000, 0x55555555, 0x55555556,
                                 0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xaaaaaaab,
                                 0xbfffffff, 0xc0000000, 0xfeffffff, 0xfffffffe, 0xffffffff};
  long double largest = 0;
  for (const std::uint32_t a : radii)
    for (std::uint32_t eighth = 0; eighth < 8; ++eighth)
      for (const std::uint32_t beside : {0xfffffe00u, 0xffffff00u, 0u, 0x100u})
        for (const std::uint32_t low : {0u, 1u, 127u, 128u, 255u}) {
          const std::uint32_t b = ((eighth << 29) + beside) | low;
          float even = NAN;
          float odd = NAN;
          box_muller<ScalarLanes>(a, b, even, odd);
          const reference::NormalPair want = reference::normals(a, b);
          ASSERT_TRUE(ulps(even, want.even) <= 4) << a << " " << b << ": " << even;
          ASSERT_TRUE(ulps(odd, want.odd) <= 4) << a << " " << b << ": " << odd;
          largest = std::max({largest, std::fabs(want.even), std::fabs(want.odd)});
        }
  EXPECT_NEAR(static_cast<double>(largest), std::sqrt(82 * std::log(2.0)), 1e-6);
}

TEST(RandomStream, RefusesRangesItDoesNotHave) {
  const RandomStream s = stream(Generator::chacha20);
  EXPECT_NO_THROW(validate(s, 0, std::int64_t{1} << 36));
  EXPECT_THROW(validate(s, 0, (std::int64_t{1} << 36) + 1), std::invalid_argument);
  EXPECT_THROW(validate(s, 128, 256), std::invalid_argument);
  EXPECT_THROW(validate(s, -256, 256), std::invalid_argument);
  EXPECT_THROW(validate(s, 256, 0), std::invalid_argument);
  EXPECT_NO_THROW(validate(stream(Generator::chacha20, Stream::noise, ~std::uint64_t{0}), 0, 1));
  EXPECT_NO_THROW(validate(stream(Generator::philox, Stream::noise, 0xffffffff), 0, 1));
  EXPECT_THROW(validate(stream(Generator::philox, Stream::noise, 0x100000000), 0, 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace cudp
