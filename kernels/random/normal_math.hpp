#pragma once
// Box-Muller transform of two words a, b of 32 random bits into two normal numbers z. random.hpp
// defines the uniform number u and the angle w that are made from a and b. u is never 0 or 1, and w
// is never on an axis; each is symmetric about the middle of its range. u (as its distance from the
// nearer end of (0, 1)) and w are exact up to one rounding to float, so small radii and small sines
// keep their relative accuracy. The error of z, compared with the formula in real numbers, is at
// most 4 ulp, with FMA and without. (The largest error in a test of 2e7 words and corner cases was
// 3.6 ulp.) The polynomials alone have errors below 1 ulp.
#include <cstdint>

#include "kernels/common/lanes.hpp"

namespace cudp {

/// Returns sqrt(-2 ln u), the radius of the Box-Muller transform, for a uniform number u in (0, 1)
/// made from two words a and b of 32 random bits. u is represented by its distance from the nearer
/// end of (0, 1), so that no precision is lost if u is near 1. The logarithm of m 2^e, with m = 1 +
/// f in [2/3, 4/3), is computed as e ln 2 + ln(1 + f). L: the type of lanes, ScalarLanes or
/// VecLanes.
template <class L>
CUDP_HD typename L::F normal_radius(typename L::U a, typename L::U b) {
  using F = typename L::F;
  using I = typename L::I;
  using U = typename L::U;
  const U upper = U(I(a) >> 31);  // all ones if u >= 1/2
  const I high = I(a ^ upper);    // complementing 40 bits turns u into 1 - u
  const I low = I((b ^ upper) & 0xffu);
  // distance = min(u, 1 - u), in [2^-41, 1/2]
  const F distance = L::fma(L::to_float(high), L::fill(0x1p-32f),
                            L::fma(L::to_float(low), L::fill(0x1p-40f), L::fill(0x1p-41f)));
  const F u = I(upper) < 0 ? L::fill(1.0f) - distance : distance;  // accurate enough to find e

  const U shifted = L::bits(u) - 0x3f2aaaabu;  // bits of 2/3
  const U exponent = shifted & 0xff800000u;    // e << 23
  const F e = L::to_float(I(shifted) >> 23);
  // f = u 2^-e - 1 = +-distance 2^-e + (0 or 2^-e) - 1, exactly
  const U scale = 0x3f800000u - exponent;  // bits of 2^-e
  const F offset = L::from_bits(scale & upper) - L::fill(1.0f);
  const F f = L::fma(distance, L::from_bits(scale | (upper & 0x80000000u)), offset);

  // -2 ln(1 + f) = f^2 Q(f) - 2 f; the whole sum's relative error is under 2^-25.4
  const F q = polynomial<L>(f, 0x1.ffffeep-1f, -0x1.5553e0p-1f, 0x1.00111ep-1f, -0x1.9a30cep-2f,
                            0x1.507b60p-2f, -0x1.19ee1ep-2f, 0x1.3a35e6p-2f, -0x1.32a566p-2f);
  const F log_mantissa = L::fma(f * f, q, f * L::fill(-2.0f));
  return L::sqrt(L::fma(e, L::fill(-0x1.62e430p+0f), log_mantissa));  // -2 ln 2
}

/// Computes two independent standard normal numbers, `even` and `odd`, from two words of 32 random
/// bits, a and b. With a SIMD type L it computes such a pair in every lane.
template <class L>
CUDP_HD void box_muller(typename L::U a, typename L::U b, typename L::F& even, typename L::F& odd) {
  using F = typename L::F;
  using I = typename L::I;
  using U = typename L::U;
  const F radius = normal_radius<L>(a, b);

  // The angle as a fraction of 2^32: a quarter turn is 2^30. x in (-1, 1) is the signed distance
  // from the nearest axis in eighths of a turn, exact: 23 bits of a 30-bit integer.
  const U turn = (b & 0xffffff00u) | 0x80u;
  const U axis = turn + 0x20000000u;  // its top two bits number the nearest axis
  const F x = L::to_float(I(turn << 2)) * L::fill(0x1p-31f);
  const F y = x * x;
  // sin and cos of pi x / 4; relative errors under 2^-24.8 and 2^-24.1
  const F s =
      x * polynomial<L>(y, 0x1.921fb6p-1f, -0x1.4abbbap-4f, 0x1.465e92p-9f, -0x1.2d9302p-15f);
  const F c = polynomial<L>(y, 1.0f, -0x1.3bd3a0p-2f, 0x1.03b13ep-6f, -0x1.4ea0e2p-12f);
  const auto swapped = I(axis << 1) < 0;  // nearest axis is that of +-90 degrees
  const F cosine = swapped ? s : c;
  const F sine = swapped ? c : s;
  even = L::from_bits(L::bits(radius * cosine) ^ ((axis ^ (axis << 1)) & 0x80000000u));
  odd = L::from_bits(L::bits(radius * sine) ^ (axis & 0x80000000u));
}

}  // namespace cudp
