#pragma once
// Arithmetic that is written once, as a template over a `lanes` type L, and compiled twice: for a
// single element (ScalarLanes; CUDA, one element per thread) and for a SIMD register of elements
// (VecLanes in vec_lanes.hpp; CPU). L has the types, and the few operations that are written
// differently in C++ for a float and for a SIMD vector.
//
// ScalarLanes and VecLanes define types F (floats), I (int32) and U (uint32). The following have
// the same meaning, lane by lane, for the types of both:
//   + - * / & | ^ ~ << >>, comparisons, mask ? a : b, the casts I(u) and U(i)
#include <cstdint>

#include "kernels/common/host_device.hpp"

// Unrolls the next loop completely, so that arrays indexed by it stay in registers.
#if defined(__CUDA_ARCH__) || defined(__clang__)
#define CUDP_UNROLL _Pragma("unroll")
#define CUDP_PRAGMA(text) _Pragma(#text)
#define CUDP_UNROLL_BY(n) CUDP_PRAGMA(unroll n)
#elif defined(__CUDACC__)
#define CUDP_UNROLL  // nvcc's host pass runs none of these loops
#define CUDP_UNROLL_BY(n)
#else
#define CUDP_UNROLL _Pragma("GCC unroll 16")
#define CUDP_UNROLL_BY(n)
#endif

namespace cudp {

/// The `lanes` type for code that computes one element at a time, e.g. one CUDA thread. Functions
/// that take a lanes type L are written once for it and for VecLanes, a whole SIMD register.
struct ScalarLanes {
  using F = float;
  using I = std::int32_t;
  using U = std::uint32_t;

  static CUDP_HD F fill(float x) { return x; }
  static CUDP_HD U fill_u(std::uint32_t x) { return x; }
  static CUDP_HD F to_float(I x) { return static_cast<float>(x); }

  static CUDP_HD U bits(F x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    U u = 0;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
#endif
  }
  static CUDP_HD F from_bits(U u) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(u);
#else
    F x = 0;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
#endif
  }

  /// Returns a b + c, rounded once (a fused multiply-add).
  static CUDP_HD F fma(F a, F b, F c) {
#ifdef __CUDA_ARCH__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
  }
  static CUDP_HD F sqrt(F x) {
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
  }

  template <int n>
  static CUDP_HD U rotate_left(U x) {
    return x << n | x >> (32 - n);
  }

  /// Computes the 64-bit product of a and m. Returns its low 32 bits and writes its high 32 bits to
  /// `high`.
  static CUDP_HD U multiply(U a, std::uint32_t m, U& high) {
    const std::uint64_t product = static_cast<std::uint64_t>(a) * m;
    high = static_cast<U>(product >> 32);
    return static_cast<U>(product);
  }
};

/// Returns c0 + c1 x + c2 x^2 + ..., by Horner's rule.
template <class L>
CUDP_HD typename L::F polynomial(typename L::F, float c0) {
  return L::fill(c0);
}
template <class L, class... Rest>
CUDP_HD typename L::F polynomial(typename L::F x, float c0, float c1, Rest... rest) {
  return L::fma(polynomial<L>(x, c1, rest...), x, L::fill(c0));
}

}  // namespace cudp
