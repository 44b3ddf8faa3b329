#pragma once
// Emulation of a tensor core. Fragments have the layout of the PTX ISA for
// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: with g = lane / 4 and t = lane % 4,
//   a, 16 x 8:  a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
//   b, 8 x 8:   b0 (t, g)   b1 (t + 4, g)
//   d, 16 x 8:  d0 (g, 2 t)   d1 (g, 2 t + 1)   d2 (g + 8, 2 t)   d3 (g + 8, 2 t + 1)
// It adds in float32, one term after the other. How a device rounds while it adds is not
// documented, and nothing may rest on it.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/support/simt/simt_emulator.hpp"

namespace simt {

/// Returns x rounded to TF32 (cvt.rna.tf32.f32): a mantissa of 10 bits, to nearest, ties away from
/// zero; beyond the largest, infinity. NaN becomes the canonical NaN.
inline float to_tf32(float x) {
  if (std::isnan(x)) return std::nanf("");
  if (std::isinf(x)) return x;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;  // a carry out of the mantissa is the next exponent's
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// Returns whether x is a TF32 number or NaN.
inline bool is_tf32(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0x1fffu) == 0 || std::isnan(x);
}

/// Registers of one lane for a tensor-core product (mma).
struct TensorFragments {
  float a[4];
  float b[2];
  float d[4];
};

/// Computes d += a b for a warp, given the registers of its lanes: what mma_tf32() does once all of
/// them have come. Returns null, or an error message if an operand is not rounded to TF32: a device
/// would ignore the other bits.
const char* multiply_fragments(void* const (&lanes)[32]);

/// Computes d += a b. All lanes of a warp must call it at the same line.
inline void mma_tf32(TensorFragments& mine, const char* file, int line) {
  together(multiply_fragments, &mine, file, line);
}

}  // namespace simt
