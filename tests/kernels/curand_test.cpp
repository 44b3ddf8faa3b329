// The Philox stream against cuRAND itself: its device functions, compiled for the host.
#include <gtest/gtest.h>

#if __has_include(<curand_kernel.h>)
#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>
#define QUALIFIERS static inline
#include <curand_kernel.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"

namespace cudp {
namespace {

TEST(Philox, DrawsWhatCurandDraws) {
  constexpr std::uint64_t kSeed = 0x9abcdef012345678;
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xfffffffe}})
    for (const Stream purpose : {Stream::sampling, Stream::noise})
      // the last two blocks have counters beyond 32 bits
      for (const std::uint64_t block :
           {0ull, 1ull, 17ull, 1ull << 29, (1ull << 30) + 5, ~0u + 0ull}) {
        const RandomStream s{Generator::philox, {{0x12345678, 0x9abcdef0}}, purpose, step};
        const auto tile = static_cast<std::int64_t>(block / 16 * 256);
        std::uint32_t words[256];
        cpu_kernels(best_simd_level()).fill_words(s, tile, tile + 256, words);
        for (std::uint64_t row = 0; row < 16; ++row) {
          curandStatePhilox4_32_10_t state;
          curand_init(kSeed, static_cast<std::uint64_t>(purpose) << 32 | step,
                      4 * (4 * block + row / 4), &state);
          for (std::uint64_t skip = 0; skip < row % 4; ++skip) curand(&state);
          EXPECT_EQ(words[row * 16 + block % 16], curand(&state)) << block << ", row " << row;
        }
      }
}

}  // namespace
}  // namespace cudp
#else
TEST(Philox, DrawsWhatCurandDraws) { GTEST_SKIP() << "built without the CUDA toolkit"; }
#endif
