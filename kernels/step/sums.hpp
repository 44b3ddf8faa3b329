#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

// Sums of clipped gradients on the CPU, as integers: multiples of a power of two, the grid step
// (common/fixed_point.hpp). All arrays have n numbers, n a multiple of 16.

/// Adds one example's gradient g to acc: acc += factor g.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// Adds one example's clipped gradient to a sum of integers: units += scale w, each number rounded
/// to the nearest integer. w is the gradient g or, with a transform (coordinate-wise clipping), (g
/// - mean) inverse. scale: clip factor / grid, where grid is the value of one unit. Numbers beyond
/// +-2^22 (kMaxUnits) are clamped.
struct AddRounded {
  std::int32_t* units;
  const float* g;
  float scale;
  std::int64_t n;
  Transform transform = {};
};

/// Computes squares = sum_j dy_j^2 u_j and products = sum_j dy_j v_j for one example and the n
/// outputs j of a dense layer: A and B of dense_square(), which gives the squared norm of the
/// layer's gradient in coordinate-wise clipping. dy: gradient of the outputs; u, v: as in
/// DenseTransformedNorm.
struct TransformedDense {
  const float* dy;
  const float* u;
  const float* v;
  int n;
};
/// Result of TransformedDense.
struct TransformedDenseSums {
  double squares;
  double products;
};

/// Adds up the parts of a sum that `count` threads have computed: out = totals[0] + units[0] +
/// totals[1] + units[1] + ... modulo 2^64. Sets all the parts to 0.
struct SumUnits {
  std::int64_t* const* totals;  ///< [count] arrays of n
  std::int32_t* const* units;   ///< [count] arrays of n
  int count;
  std::int64_t* out;
  std::int64_t n;
};

}  // namespace cudp
