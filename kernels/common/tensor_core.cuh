#pragma once
// Matrix product by tensor cores in TF32: operands are float32 with a mantissa of 10 bits, sums are
// float32. From Ampere on.
#include "kernels/common/lanes.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/common/simt.cuh"
#ifndef __CUDACC__
#include "simt_tensor.hpp"
#endif

namespace cudp::inline CUDP_SIMT {

/// Returns x rounded to TF32: to nearest, ties away from zero.
__device__ __forceinline__ float to_tf32(float x) {
#ifdef __CUDACC__
  unsigned bits = 0;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
#else
  return simt::to_tf32(x);
#endif
}

/// A float32 number split into the sum of two TF32 numbers, `high` and `low`, which together keep
/// 22 of its 24 bits, however small or large it is. If it is NaN or infinite, `low` is NaN, so the
/// sum is NaN.
struct SplitTf32 {
  float high, low;
};
__device__ __forceinline__ SplitTf32 split_tf32(float x) {
  constexpr std::uint32_t kKept = ~0x1fffu;
  const float high = ScalarLanes::from_bits((ScalarLanes::bits(x) + 0x1000u) & kKept);
  return {high, ScalarLanes::from_bits(ScalarLanes::bits(x - high) & kKept)};
}

/// Returns the number to write to memory for x: x rounded to TF32 if `as` is tf32, otherwise x
/// itself. Kernels that use tensor cores then need not round it on every load.
__device__ __forceinline__ float stored(float x, Precision as) {
  return as == Precision::tf32 ? to_tf32(x) : x;
}

/// Computes d += a b with TF32 matrices a [16, 8], b [8, 8] and a float32 matrix d [16, 8]. A whole
/// warp computes it, and every lane must call it. Lane 4 g + t passes the elements
///   a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)    b: (t, g), (t + 4, g)
///   top: d(g, 2 t), d(g, 2 t + 1)    bottom: d(g + 8, 2 t), d(g + 8, 2 t + 1)
/// (PTX ISA, "Matrix Fragments for mma.m16n8k8"). Requires a and b to be rounded by to_tf32.
__device__ __forceinline__ void mma_tf32(float* top, float* bottom, const float (&a)[4],
                                         const float (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(top[0]), "+f"(top[1]), "+f"(bottom[0]), "+f"(bottom[1])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
  simt::TensorFragments f{
      {a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {top[0], top[1], bottom[0], bottom[1]}};
  simt::mma_tf32(f, __FILE__, __LINE__);
  for (int i = 0; i < 2; ++i) {
    top[i] = f.d[i];
    bottom[i] = f.d[2 + i];
  }
#endif
}

}  // namespace cudp::inline CUDP_SIMT
