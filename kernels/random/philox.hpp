#pragma once
#include <cstdint>

#include "kernels/common/lanes.hpp"

namespace cudp {

/// Philox4x32-10 (Salmon et al. 2011; the generator of cuRAND and Random123), one counter per SIMD
/// lane, all with the same key. Replaces counter [4] with the four random words. L: the type of
/// lanes, ScalarLanes or VecLanes. key0, key1: the key's words.
template <class L>
CUDP_HD void philox4x32_10(typename L::U (&counter)[4], std::uint32_t key0, std::uint32_t key1) {
  using U = typename L::U;
  CUDP_UNROLL for (int round = 0; round < 10; ++round) {
    U high0;
    U high1;
    const U low0 = L::multiply(counter[0], 0xD2511F53u, high0);
    const U low1 = L::multiply(counter[2], 0xCD9E8D57u, high1);
    counter[0] = high1 ^ counter[1] ^ L::fill_u(key0);
    counter[2] = high0 ^ counter[3] ^ L::fill_u(key1);
    counter[1] = low1;
    counter[3] = low0;
    key0 += 0x9E3779B9u;  // golden ratio
    key1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
}

}  // namespace cudp
