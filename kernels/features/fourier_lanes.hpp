#pragma once
// Short discrete Fourier transforms of several signals at once, one per lane of a SIMD register.
#include <cstdint>

#include "kernels/common/lanes.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/features/fourier.hpp"

namespace cudp::CUDP_SIMD {

struct Complex {
  Vec re, im;
};
CUDP_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
CUDP_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
CUDP_INLINE Complex operator*(Complex a, float b) { return {a.re * b, a.im * b}; }
CUDP_INLINE Complex times(Complex a, float re, float im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
CUDP_INLINE Complex times_minus_i(Complex a) { return {a.im, -a.re}; }

// A butterfly replaces its arguments, a[0..radix-1], with their discrete Fourier transform, in
// registers.

CUDP_INLINE void butterfly(Complex (&a)[2]) {
  const Complex d = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = d;
}

CUDP_INLINE void butterfly3(Complex& a, Complex& b, Complex& c) {
  constexpr float kSin = 0.866025403784438647f;  // sin(2 pi / 3)
  const Complex sum = b + c;
  const Complex turn = times_minus_i((b - c) * kSin);
  const Complex middle = a - sum * 0.5f;
  a = a + sum;
  b = middle + turn;
  c = middle - turn;
}
CUDP_INLINE void butterfly(Complex (&a)[3]) { butterfly3(a[0], a[1], a[2]); }

CUDP_INLINE void butterfly4(Complex& a, Complex& b, Complex& c, Complex& d) {
  const Complex even = a + c;
  const Complex even_difference = a - c;
  const Complex odd = b + d;
  const Complex odd_difference = times_minus_i(b - d);
  a = even + odd;
  b = even_difference + odd_difference;
  c = even - odd;
  d = even_difference - odd_difference;
}
CUDP_INLINE void butterfly(Complex (&a)[4]) { butterfly4(a[0], a[1], a[2], a[3]); }

CUDP_INLINE void butterfly(Complex (&a)[5]) {
  constexpr float kCos1 = 0.309016994374947424f;   // cos(2 pi / 5)
  constexpr float kCos2 = -0.809016994374947424f;  // cos(4 pi / 5)
  constexpr float kSin1 = 0.951056516295153572f;
  constexpr float kSin2 = 0.587785252292473129f;
  const Complex outer = a[1] + a[4];
  const Complex inner = a[2] + a[3];
  const Complex outer_difference = a[1] - a[4];
  const Complex inner_difference = a[2] - a[3];
  const Complex middle1 = a[0] + outer * kCos1 + inner * kCos2;
  const Complex middle2 = a[0] + outer * kCos2 + inner * kCos1;
  const Complex turn1 = times_minus_i(outer_difference * kSin1 + inner_difference * kSin2);
  const Complex turn2 = times_minus_i(outer_difference * kSin2 - inner_difference * kSin1);
  a[0] = a[0] + outer + inner;
  a[1] = middle1 + turn1;
  a[4] = middle1 - turn1;
  a[2] = middle2 + turn2;
  a[3] = middle2 - turn2;
}

/// Fourier transform of six numbers in place, as transforms of sizes 2 and 3. Because 2 and 3 have
/// no common factor, no twiddle factors are needed between the two (Good and Thomas). With n1, k1
/// in 0..1 and n2, k2 in 0..2, the input index is 3 n1 + 2 n2 and the output index 3 k1 + 4 k2,
/// modulo 6.
CUDP_INLINE void butterfly(Complex (&a)[6]) {
  Complex even[3] = {a[0], a[2], a[4]};
  Complex odd[3] = {a[3], a[5], a[1]};
  butterfly(even);
  butterfly(odd);
  a[0] = even[0] + odd[0];
  a[3] = even[0] - odd[0];
  a[4] = even[1] + odd[1];
  a[1] = even[1] - odd[1];
  a[2] = even[2] + odd[2];
  a[5] = even[2] - odd[2];
}

CUDP_INLINE void butterfly(Complex (&a)[8]) {
  constexpr float kHalfRoot = 0.707106781186547524f;
  Complex even[4] = {a[0], a[2], a[4], a[6]};
  Complex odd[4] = {a[1], a[3], a[5], a[7]};
  butterfly(even);
  butterfly(odd);
  odd[1] = times(odd[1], kHalfRoot, -kHalfRoot);
  odd[2] = times_minus_i(odd[2]);
  odd[3] = times(odd[3], -kHalfRoot, -kHalfRoot);
  CUDP_UNROLL
  for (int k = 0; k < 4; ++k) {
    a[k] = even[k] + odd[k];
    a[k + 4] = even[k] - odd[k];
  }
}

/// One stage, of radix R, of a Fourier transform: replaces s interleaved signals of R m numbers
/// with R s signals of m numbers. x, y: input and output; consecutive numbers are dx apart in x and
/// dy apart in y. w: twiddle factors, null for the last stage (m = 1).
template <int R>
CUDP_INLINE void fourier_stage(const Complex* x, std::int64_t dx, Complex* y, std::int64_t dy,
                               std::int64_t m, std::int64_t s, const float* w) {
  for (std::int64_t p = 0; p < m; ++p)
    for (std::int64_t q = 0; q < s; ++q) {
      Complex a[R];
      CUDP_UNROLL
      for (int k = 0; k < R; ++k) {
        a[k] = x[(q + s * (p + m * k)) * dx];
      }
      butterfly(a);
      Complex* const to = y + (q + s * R * p) * dy;
      to[0] = a[0];
      CUDP_UNROLL
      for (int k = 1; k < R; ++k) {
        if (w == nullptr) {
          to[s * k * dy] = a[k];
        } else {
          const float* const f = w + 2 * (p * (R - 1) + k - 1);
          to[s * k * dy] = times(a[k], f[0], f[1]);
        }
      }
    }
}

/// One stage, of any radix, of a Fourier transform: replaces s interleaved signals of radix m
/// numbers with radix s signals of m numbers, computed from the definition. x, y: input and output;
/// consecutive numbers are dx apart in x and dy apart in y. roots: exp(-2 pi i k / radix), k =
/// 0..radix-1, as pairs (cos, sin). w: twiddle factors, null for the last stage.
CUDP_INLINE void fourier_stage_any(std::int64_t radix, const float* roots, const Complex* x,
                                   std::int64_t dx, Complex* y, std::int64_t dy, std::int64_t m,
                                   std::int64_t s, const float* w) {
  for (std::int64_t p = 0; p < m; ++p)
    for (std::int64_t q = 0; q < s; ++q)
      for (std::int64_t k = 0; k < radix; ++k) {
        Complex sum = x[(q + s * p) * dx];
        for (std::int64_t j = 1; j < radix; ++j) {
          const float* const root = roots + 2 * (j * k % radix);
          sum = sum + times(x[(q + s * (p + m * j)) * dx], root[0], root[1]);
        }
        if (w != nullptr && k > 0) {
          const float* const f = w + 2 * (p * (radix - 1) + k - 1);
          sum = times(sum, f[0], f[1]);
        }
        y[(q + s * (radix * p + k)) * dy] = sum;
      }
}

/// Computes the Fourier transform of the n numbers from[j dx], j = 0..n-1, and writes it to to[j
/// dy]. `from` may equal `to`. work: memory for 2 n numbers that overlaps neither.
static inline void fourier(const FourierPlan& plan, const Complex* from, std::int64_t dx,
                           Complex* to, std::int64_t dy, Complex* work) {
  std::int64_t s = 1;
  std::int64_t left = plan.n;
  const float* w = plan.twiddles;
  const Complex* x = from;
  if (plan.stages < 2) {  // no stage would copy the input to `work`, so copy it here
    for (int j = 0; j < plan.n; ++j) work[j] = from[j * dx];
    x = work;
    dx = 1;
  }
  for (int stage = 0; stage < plan.stages; ++stage) {
    const int radix = plan.radix[stage];
    const bool last = stage + 1 == plan.stages;
    const std::int64_t m = left / radix;
    Complex* const y = last ? to : work + (stage % 2 == 0 ? 0 : plan.n);
    const std::int64_t d = last ? dy : 1;
    const float* const f = last ? nullptr : w;
    switch (radix) {
      case 2:
        fourier_stage<2>(x, dx, y, d, m, s, f);
        break;
      case 3:
        fourier_stage<3>(x, dx, y, d, m, s, f);
        break;
      case 4:
        fourier_stage<4>(x, dx, y, d, m, s, f);
        break;
      case 5:
        fourier_stage<5>(x, dx, y, d, m, s, f);
        break;
      case 6:
        fourier_stage<6>(x, dx, y, d, m, s, f);
        break;
      case 8:
        fourier_stage<8>(x, dx, y, d, m, s, f);
        break;
      default:
        fourier_stage_any(radix, plan.roots[stage], x, dx, y, d, m, s, f);
    }
    w += 2 * m * (radix - 1);
    s *= radix;
    left = m;
    x = y;
    dx = 1;
  }
}

}  // namespace cudp::CUDP_SIMD
