#pragma once
#include <cstdint>

#include "kernels/common/lanes.hpp"

namespace cudp {

template <class L>
CUDP_HD void chacha20_quarter_round(typename L::U& a, typename L::U& b, typename L::U& c,
                                    typename L::U& d) {
  a += b;
  d = L::template rotate_left<16>(d ^ a);
  c += d;
  b = L::template rotate_left<12>(b ^ c);
  a += b;
  d = L::template rotate_left<8>(d ^ a);
  c += d;
  b = L::template rotate_left<7>(b ^ c);
}

/// ChaCha20 block function (RFC 8439, section 2.3), one block per SIMD lane, which all have the
/// same key and nonce. counter: block number. Writes x [16]: word i of a block is bytes 4i..4i+3 of
/// its keystream, little-endian. L: the type of lanes, ScalarLanes or VecLanes. nonce0, nonce1,
/// nonce2: the nonce's words.
template <class L>
CUDP_HD void chacha20_block(const std::uint32_t (&key)[8], typename L::U counter,
                            std::uint32_t nonce0, std::uint32_t nonce1, std::uint32_t nonce2,
                            typename L::U (&x)[16]) {
  // The constants are the ASCII text "expand 32-byte k".
  const std::uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  CUDP_UNROLL for (int i = 0; i < 4; ++i) { x[i] = L::fill_u(constants[i]); }
  CUDP_UNROLL for (int i = 0; i < 8; ++i) { x[4 + i] = L::fill_u(key[i]); }
  x[12] = counter;
  x[13] = L::fill_u(nonce0);
  x[14] = L::fill_u(nonce1);
  x[15] = L::fill_u(nonce2);

  for (int double_round = 0; double_round < 10; ++double_round) {
    chacha20_quarter_round<L>(x[0], x[4], x[8], x[12]);
    chacha20_quarter_round<L>(x[1], x[5], x[9], x[13]);
    chacha20_quarter_round<L>(x[2], x[6], x[10], x[14]);
    chacha20_quarter_round<L>(x[3], x[7], x[11], x[15]);
    chacha20_quarter_round<L>(x[0], x[5], x[10], x[15]);
    chacha20_quarter_round<L>(x[1], x[6], x[11], x[12]);
    chacha20_quarter_round<L>(x[2], x[7], x[8], x[13]);
    chacha20_quarter_round<L>(x[3], x[4], x[9], x[14]);
  }

  CUDP_UNROLL for (int i = 0; i < 4; ++i) { x[i] += L::fill_u(constants[i]); }
  CUDP_UNROLL for (int i = 0; i < 8; ++i) { x[4 + i] += L::fill_u(key[i]); }
  x[12] += counter;
  x[13] += L::fill_u(nonce0);
  x[14] += L::fill_u(nonce1);
  x[15] += L::fill_u(nonce2);
}

}  // namespace cudp
