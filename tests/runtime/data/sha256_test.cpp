#include "runtime/data/sha256.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace cudp {
namespace {

/// Lengths around the ends of blocks, in pieces that begin and end anywhere.
TEST(Sha256, IsThatOfLibsodium) {
  std::vector<std::uint8_t> bytes(700);
  std::uint32_t state = 1;
  for (std::uint8_t& b : bytes)
    b = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    const std::span all = std::span<const std::uint8_t>(bytes).first(n);
    Sha256::Digest expected{};
    ::crypto_hash_sha256(expected.data(), all.data(), all.size());
    for (const std::size_t step : {1u, 7u, 63u, 64u, 65u, 300u})
      for (const bool uses_processor : {true, false}) {
        Sha256 hash(uses_processor);
        for (std::size_t i = 0; i < n; i += step) hash.add(all.subspan(i, std::min(step, n - i)));
        hash.add({});
        ASSERT_EQ(hash.finish(), expected) << n << " bytes in pieces of " << step;
      }
  }
}

/// FIPS 180-4, "abc".
TEST(Sha256, IsThatOfTheStandard) {
  constexpr std::uint8_t kAbc[] = {'a', 'b', 'c'};
  constexpr Sha256::Digest kExpected = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                        0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                        0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                        0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
  Sha256 hash;
  hash.add(kAbc);
  EXPECT_EQ(hash.finish(), kExpected);
}

}  // namespace
}  // namespace cudp
