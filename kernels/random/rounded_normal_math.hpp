#pragma once
// A rounded normal pair in double, and the test whether it is correct (Ziv's test): K is accepted
// if every real number within the error bound E of the computed s Z has the same nearest integer. D
// is double, or a GNU vector of doubles.
//
// E holds for every backend, with multiply-adds fused or not. Errors are in units of e = 2^-52; a
// rounding to nearest has a relative error of at most e / 2.
//
//   u1 = the first 64 bits of U1 + 2^-65, rounded once (both halves of the sum are exact):
//        |u1 - U1| <= (e / 2) u1 + 2^-65 = e u1 (1/2 + 2^-13 / u1).
//   L  = -2 log(u1). The doubling is exact. The CPU's log (log_sincospi.hpp) errs by 1.6 e. CUDA's
//        table states 1 ulp from the correctly rounded result, so 1.5, found by tests: taken as 2.
//        |L - (-2 ln U1)| <= 2 e L + 2 e (1/2 + 2^-13 / u1)
//   r  = sqrt(L), correctly rounded, and the derivative of sqrt is 1 / (2 r):
//        |r - R| <= e r + e (1/2 + 2^-13 / u1) / r + (e / 2) r
//   t  = twice the first 64 bits of U2 + 2^-64, minus 2 from 1 on, rounded once: |t| <= 1, so t
//        errs by e / 4 + 2^-64, and pi t by 0.79 e.
//   c  = cos(pi t) or sin(pi t): the CPU's (log_sincospi.hpp) err by 1.4 e, CUDA's by 2 ulp from
//        the correctly rounded result, so 2.5: taken as 3. In total |c - C| <= 3 e + 0.79 e, and
//        |c| <= 1.
//   x  = s r c, two roundings: e s r.
//   |x - s Z| <= s (|r - R| + r |c - C| + e r)
//             <= s e (r (1 + 0.5 + 3 + 0.79 + 1) + (1/2 + 2^-13 / u1) / r)
//
// This is the first order. The factor 1 + 2^-9 covers the rest if E < 1/2 and L >= 2^-36:
//   - E >= s e 2^-13 / (u1 r) with s >= 2^16 and r < 9.6, so E < 1/2 only if
//     e 2^-13 / u1 < 4.8 * 2^-16 < 2^-13. Then u1 is within 2^-12 of U1 relative, and ln(U1 / u1)
//     within 2^-12 of its first order. This is why s has a minimum: with a smaller s the
//     smallest u1 would be accepted, and the noise truncated.
//   - The error of L is below 2^-12 L. For L <= 1, u1 >= 0.6, so it is below 2 e L + 1.01 e, and L
//     is 2^-36 or more. For L > 1 the previous item bounds it. So sqrt is within 2^-12 of its
//     first order.
//   - Products of errors are below 2^-12 of the errors, and E's own roundings below 8 e of E.
//
// L < 2^-36 has probability 2^-37 and is passed to the exact routine. So is the result of u1 = 1,
// for which L and r are -0, and E is -infinity. All comparisons treat NaN as undecided.
#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// Returns the first uniform number U1 in (0, 1] of a pair of normal numbers (Box-Muller). Its
/// first 64 bits are the two 32-bit words `high` and `low`, given as whole numbers; the result is
/// the middle of the interval of all numbers with these bits. D: double or a SIMD vector of
/// doubles.
template <class D>
CUDP_HD D rounded_normal_u1(D high, D low) {
  return high * 0x1p-32 + (low * 0x1p-64 + 0x1p-65);
}

/// Returns the angle of the Box-Muller transform in half turns: 2 U2 or 2 U2 - 2, in [-1, 1]. U2 is
/// the second uniform number of a pair. Its first 32-bit word, read as a signed integer, is
/// signed_high; its second word is low. D: double or a SIMD vector of doubles.
template <class D>
CUDP_HD D rounded_normal_turn(D signed_high, D low) {
  return signed_high * 0x1p-31 + (low * 0x1p-63 + 0x1p-64);
}

/// Returns a bound on the rounding error of a normal number r cos(t) that was computed in double,
/// as a multiple of rounded_normal_spread(s). u1: the uniform number from which the radius r =
/// sqrt(-2 ln u1) was computed. D: double or a SIMD vector of doubles.
template <class D>
CUDP_HD D rounded_normal_error(D u1, D r) {
  return 0x1p-52 * (r * 6.29 + (u1 * 0.5 + 0x1p-13) / (u1 * r));
}

/// Returns the factor by which the caller multiplies rounded_normal_error() to bound the rounding
/// error of a normal number with standard deviation s. error_factor: 1, or more in tests to enlarge
/// the bound.
CUDP_HD double rounded_normal_spread(double s, double error_factor = 1.0) {
  return s * ((1.0 + 0x1p-9) * error_factor);
}

/// Returns true (in a SIMD vector: all bits set) if the error bound e of a normal number holds and
/// is below 1/2. Otherwise the number cannot be rounded with certainty in double. l: the computed
/// -2 ln u1, with u1 the uniform number from which the normal number is made. D: double or a SIMD
/// vector of doubles.
template <class D>
CUDP_HD auto rounded_normal_bounded(D l, D e) {
  return (l >= 0x1p-36) & (e >= 0.0) & (e < 0.5);
}

/// Constant to round doubles: if it is added to x, |x| < 2^51, the low bits of the result are the
/// integer nearest to x.
inline constexpr double kToInteger = 0x1.8p52;

/// Returns true (in a SIMD vector: all bits set) if the integer n, the nearest one to x, is also
/// the nearest integer to every number that differs from x by at most e. A margin of 2^-40 allows
/// for the rounding error of the comparison itself. D: double or a SIMD vector of doubles.
template <class D>
CUDP_HD auto rounded_normal_decided(D x, D n, D e) {
  const D off = x - n;  // exact, or exact up to the product if the compiler fuses it
  return (off + e < 0.5 - 0x1p-40) & (e - off < 0.5 - 0x1p-40);
}

}  // namespace cudp
