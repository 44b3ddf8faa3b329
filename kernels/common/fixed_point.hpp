#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp {

/// Sums of clipped gradients on the device are whole multiples of a grid far below what float32
/// resolves. Adding them is exact, so neither the order in which blocks arrive nor the size of a
/// micro-batch changes a bit. Two's complement.
using FixedPoint = unsigned long long;

CUDP_HD FixedPoint to_fixed(float v, float inverse_grid) {
  return static_cast<FixedPoint>(llrintf(v * inverse_grid));
}

/// The grid, a power of two: with it a sum of `examples` gradients of norm <= max_norm (and one
/// rounding each) stays below 2^62 units, and it is never coarser than that takes, nor finer than
/// max_norm 2^-40.
inline float sum_grid(float max_norm, std::uint64_t examples) {
  int bits = 61;
  for (; examples > 0; examples >>= 1) --bits;
  return std::ldexp(1.0f, std::ilogb(max_norm) + 1 - (bits < 40 ? bits : 40));
}

/// sum[j] = fixed[j] * grid, rounded once; fixed[j] = 0.
struct FixedToFloat {
  FixedPoint* fixed;
  float* sum;
  double grid;
  std::int64_t n;
};

inline void validate(const FixedToFloat& a) {
  expect(a.fixed && a.sum && a.n > 0 && a.grid > 0,
         "fixed to float: expected pointers, n > 0 and a grid");
}
inline LaunchShape launch_shape(const FixedToFloat& a) { return strided_shape(a.n); }

}  // namespace cudp
