#pragma once
#include <cstdint>

#include "kernels/random/chacha20.hpp"
#include "kernels/random/philox.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Computes the 16 words of block n of a random stream's generator, one block per SIMD lane. The
/// words of a block are not neighbours in the stream; RandomStream describes their positions. L:
/// the type of lanes, ScalarLanes or VecLanes.
template <class L>
CUDP_HD void random_block(const RandomStream& s, typename L::U n, typename L::U (&words)[16]) {
  const std::uint32_t stream = static_cast<std::uint32_t>(s.stream);
  const std::uint32_t step_low = static_cast<std::uint32_t>(s.step);
  const std::uint32_t step_high = static_cast<std::uint32_t>(s.step >> 32);
  if (s.generator == Generator::chacha20) {
    chacha20_block<L>(s.key.words, n, stream, step_low, step_high, words);
    return;
  }
  CUDP_UNROLL for (int q = 0; q < 4; ++q) {
    typename L::U counter[4] = {(n << 2) + static_cast<std::uint32_t>(q), n >> 30,
                                L::fill_u(step_low), L::fill_u(stream)};
    philox4x32_10<L>(counter, s.key.words[0], s.key.words[1]);
    CUDP_UNROLL for (int i = 0; i < 4; ++i) { words[4 * q + i] = counter[i]; }
  }
}

}  // namespace cudp
