#pragma once
// Matrix products by tensor cores in fp16: operands are fp16, two to a 32-bit register with the
// first in its low half; sums are float32. From Ampere on.
#include <cstdint>

#include "kernels/common/simt.cuh"
#ifdef __CUDACC__
#define CUDP_CALLER
#else
#include "simt_half.hpp"
#define CUDP_CALLER , SIMT_SITE
#endif

namespace cudp::inline CUDP_SIMT {

using u32 = std::uint32_t;

/// Loads four 8 x 8 matrices of fp16 from shared memory. A whole warp calls it. Lane 8 m + r passes
/// the address of row r of matrix m, a multiple of 16 bytes. Lane 4 g + t receives, in r[m],
/// elements (g, 2 t) and (g, 2 t + 1) of matrix m (PTX ISA, "ldmatrix").
__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], const void* row CUDP_CALLER) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  simt::load_matrices(r, row, false, file, line);
#endif
}

/// Loads four 8 x 8 matrices of fp16 from shared memory and transposes each: lane 4 g + t receives
/// elements (2 t, g) and (2 t + 1, g) of each matrix. A whole warp calls it; lane 8 m + r passes
/// the address of row r of matrix m, a multiple of 16 bytes.
__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], const void* row CUDP_CALLER) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  simt::load_matrices(r, row, true, file, line);
#endif
}

/// Loads two 8 x 8 matrices of fp16 from shared memory and transposes each: lane 4 g + t receives
/// elements (2 t, g) and (2 t + 1, g) of each matrix. A whole warp calls it. Lane 8 m + r, for m =
/// 0 and 1, passes the address of row r of matrix m; the addresses of lanes 16 to 31 are not used.
__device__ __forceinline__ void ldmatrix_x2_trans(u32 (&r)[2], const void* row CUDP_CALLER) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  simt::load_matrices(r, row, true, file, line);
#endif
}

/// Computes d += a b with fp16 matrices a [16, 16], b [16, 8] and a float32 matrix d [16, 8]. A
/// whole warp calls it. Each lane passes its own elements (row, column) of the matrices; a word of
/// a or b contains two neighbouring ones. With g = lane / 4 and t = lane % 4, "2 t .." meaning 2 t
/// and 2 t + 1, these are
///   a: (g, 2 t ..), (g + 8, 2 t ..), (g, 2 t + 8 ..), (g + 8, 2 t + 8 ..)
///   b: (2 t .., g), (2 t + 8 .., g)
///   d: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
/// (PTX ISA, "Matrix Fragments for mma.m16n8k16").
__device__ __forceinline__ void multiply_add(float (&d)[4], const u32 (&a)[4],
                                             const u32 (&b)[2] CUDP_CALLER) {
#ifdef __CUDACC__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::multiply_add(d, a, b, file, line);
#endif
}

/// Rounds two numbers to fp16 (to nearest, ties to even; numbers beyond 65,504 to infinity) and
/// packs them, `low` into the low 16 bits.
__device__ __forceinline__ u32 halves(float low, float high) {
#ifdef __CUDACC__
  u32 both = 0;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return simt::half_bits(low) | u32{simt::half_bits(high)} << 16;
#endif
}

__device__ __forceinline__ float low_half(u32 both) {
#ifdef __CUDACC__
  float x = 0;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(x) : "r"(both));
  return x;
#else
  return simt::half_value(static_cast<std::uint16_t>(both));
#endif
}

__device__ __forceinline__ float high_half(u32 both) {
#ifdef __CUDACC__
  float x = 0;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(x) : "r"(both));
  return x;
#else
  return simt::half_value(static_cast<std::uint16_t>(both >> 16));
#endif
}

/// Two floats, each split into the sum of two fp16 numbers with about 22 bits together. The word
/// `high` has the two larger parts, the word `low` the two remainders. A float beyond the range of
/// fp16 becomes inf + -inf, which is NaN.
struct SplitHalves {
  u32 high, low;
};
__device__ __forceinline__ SplitHalves split_halves(float x, float y) {
  const u32 high = halves(x, y);
  return {high, halves(x - low_half(high), y - high_half(high))};
}

/// Builds a word from four of eight bytes: bytes 0 to 3 are those of `low`, bytes 4 to 7 those of
/// `high`. The i-th 4-bit digit of `selector` is the index of the byte that becomes byte i of the
/// result.
__device__ __forceinline__ u32 permute_bytes(u32 low, u32 high, u32 selector) {
#ifdef __CUDACC__
  return __byte_perm(low, high, selector);
#else
  return simt::permute_bytes(low, high, selector);
#endif
}

/// Returns a b + c, rounded once. Each argument is a word of two fp16 numbers, and so is the
/// result: the upper and the lower numbers are combined separately.
__device__ __forceinline__ u32 fma_halves(u32 a, u32 b, u32 c) {
#ifdef __CUDACC__
  u32 r = 0;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#else
  return simt::fma_halves(a, b, c);
#endif
}

/// Converts bytes `first` and `first + 1` of a word to fp16 and divides them by 256, which is
/// exact. The result is a word of two fp16 numbers. How: the bits 0x6400 + b are the fp16 number
/// 1024 + b; it is multiplied by 1 / 256 (bits 0x1c00), and 4 is subtracted (-4 has the bits
/// 0xc400).
template <int first>
__device__ __forceinline__ u32 bytes_to_halves(u32 bytes) {
  const u32 raised = permute_bytes(bytes, 0x64646464u, first == 0 ? 0x4140u : 0x4342u);
  static_assert(first == 0 || first == 2);
  return fma_halves(raised, 0x1c001c00u, 0xc400c400u);
}

}  // namespace cudp::inline CUDP_SIMT
#undef CUDP_CALLER
