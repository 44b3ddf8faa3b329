#pragma once
// Natural logarithm, and sine and cosine of a multiple of pi, for SIMD vectors of doubles. Only for
// the arguments that occur in rounded_normal_math.hpp, whose proof uses the error bounds stated
// here. The bounds hold with multiply-adds fused or not. They are in units of e = 2^-52; a rounding
// to nearest has a relative error of at most e / 2. Template parameter D: a GNU vector of doubles.
#include <cstdint>

#include "kernels/common/vec.hpp"

namespace cudp {

/// SIMD vector of 64-bit integers with as many lanes as D. D: a SIMD vector of doubles.
template <class D>
struct WordsOf {
  typedef std::uint64_t type __attribute__((vector_size(sizeof(D))));
};

/// Returns ln x for x in [2^-65, 1]. The relative error is below 1.6 e, e = 2^-52; ln 1 is +0.
///
/// x = 2^k m, m in [sqrt(1/2), sqrt(2)), and f = m - 1 is exact. With z = f / (2 + f), w = z^2:
///   ln m = 2 artanh z = f - y,  y = f^2 / 2 - S,  S = z (f^2 / 2 + R),
///   R = sum over j >= 1 of 2 w^j / (2 j + 1).
/// This is the form of FreeBSD's log (Sun Microsystems, 1993). The terms of R after j = 10 are
/// below 2^-53 R and add less than 0.01 e to the error.
///
/// Relative errors: 1 e of z, 5 e of R, 3.6 e of S, and e / 2 of f^2 / 2 and of each sum that
/// follows.
///
/// Case k = 0: x <= 1, so f <= 0 and no sum cancels. |S| <= 0.031 |ln x|, f^2 / 2 <= 0.147 |ln x|,
/// y <= 0.155 |ln x|. Error relative to |ln x|: 0.112 e from S, 0.074 e from f^2 / 2, 0.078 e from
/// y, and 0.5 e from f - y.
///
/// Case k < 0: the relative error is largest for x = sqrt(1/2), k = -1, f = sqrt(2) - 1. Then |ln
/// x| = 0.3466, f^2 / 2 = 0.0858, S = 0.0182, y = 0.0676, and k ln2_high is exact. Absolute errors:
///   0.0429 e  f^2 / 2
///   0.0654 e  S
///   0.0338 e  y
///   0.0338 e  y - k ln2_low
///   0.1733 e  f - (y - k ln2_low)
/// Together they are 1.01 e |ln x|. The last sum adds 0.5 e |ln x|.
template <class D>
CUDP_INLINE D log_of_fraction(D x) {
  using W = typename WordsOf<D>::type;
  constexpr std::uint64_t kOne = 0x3ff0000000000000;       // 1.0
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  constexpr double kLn2High = 0x1.62e42feep-1;             // 32 bits: its product with k is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const W shifted = (W)x + (kOne - kRootHalf);
  const W exponent = shifted >> 52;
  const D k = (D)(exponent | 0x4330000000000000) - (0x1p52 + 1023.0);
  const D f = (D)((shifted & 0x000fffffffffffff) + kRootHalf) - 1.0;
  const D z = f / (f + 2.0);
  const D w = z * z;
  D r = w * (2.0 / 21.0) + 2.0 / 19.0;
  r = r * w + 2.0 / 17.0;
  r = r * w + 2.0 / 15.0;
  r = r * w + 2.0 / 13.0;
  r = r * w + 2.0 / 11.0;
  r = r * w + 2.0 / 9.0;
  r = r * w + 2.0 / 7.0;
  r = r * w + 2.0 / 5.0;
  r = r * w + 2.0 / 3.0;
  r = r * w;
  const D half_square = f * f * 0.5;
  const D y = half_square - z * (half_square + r);
  return k * kLn2High + (f - (y - k * kLn2Low));
}

template <class D>
struct SineCosine {
  D sine;
  D cosine;
};

/// Returns sin(pi t) and cos(pi t) for t in [-1, 1]. Absolute errors are below 1.4 e, e = 2^-52.
///
/// t = q / 2 + r, with q an integer and |r| <= 1/4, is exact. Taylor's series is in w = r^2 <=
/// 1/16; the first terms left out are below 2^-58. c is the rest of a series after its first term.
///
/// Sine: the last steps are p = pi + w c and r p. |w c| <= 0.33 has a relative error of 2.3 e, so
/// an absolute error of 0.76 e. The constant pi and the sum each have an error of e pi / 2. So the
/// error of p is e (pi / 2 + 0.76 + pi / 2), which is below 1.39 e p. The relative error of r p is
/// 1.89 e, and |r p| is at most sqrt(1/2).
///
/// Cosine: the last step is 1 + w c. |w c| <= 0.31 has an error of 0.72 e; the sum has one of e /
/// 2.
template <class D>
CUDP_INLINE SineCosine<D> sine_cosine_of_turn(D t) {
  using W = typename WordsOf<D>::type;
  constexpr double kToNearest = 0x1.8p52;
  const D shifted = t * 2.0 + kToNearest;
  const D r = t - (shifted - kToNearest) * 0.5;
  const D w = r * r;
  // Coefficients (-1)^j pi^(2 j + 1) / (2 j + 1)! of the sine, j = 8 ... 0.
  D s = w * 0x1.aaec32af93359p-21 - 0x1.6fadb9f155744p-16;
  s = s * w + 0x1.e8f434d018d63p-12;
  s = s * w - 0x1.e3074fde8871fp-8;
  s = s * w + 0x1.50783487ee782p-4;
  s = s * w - 0x1.32d2cce62bd86p-1;
  s = s * w + 0x1.466bc6775aae2p+1;
  s = s * w - 0x1.4abbce625be53p+2;
  s = s * w + 0x1.921fb54442d18p+1;
  s = s * r;
  // Coefficients (-1)^j pi^(2 j) / (2 j)! of the cosine, j = 8 ... 0.
  D c = w * 0x1.20c62c2f2d7f5p-18 - 0x1.b6e24f44b128fp-14;
  c = c * w + 0x1.f9d38a3763cc3p-10;
  c = c * w - 0x1.a6d1f2a204a8cp-6;
  c = c * w + 0x1.e1f506891babbp-3;
  c = c * w - 0x1.55d3c7e3cbffap+0;
  c = c * w + 0x1.03c1f081b5ac4p+2;
  c = c * w - 0x1.3bd3cc9be45dep+2;
  c = c * w + 1.0;
  const W q = (W)shifted;  // modulo 4: quarter turns
  const W odd = -(q & 1);
  const W sine = ((W)s & ~odd) | ((W)c & odd);
  const W cosine = ((W)c & ~odd) | ((W)s & odd);
  return {(D)(sine ^ (q & 2) << 62), (D)(cosine ^ ((q + 1) & 2) << 62)};
}

}  // namespace cudp
