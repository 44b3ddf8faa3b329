#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

// Sums of clipped gradients on the CPU, as integers: multiples of a power of two, the grid step
// (common/fixed_point.hpp). All arrays have n numbers, n a multiple of 16.

/// Adds one example's gradient g, multiplied by a factor, to an array: acc += factor * g.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// Adds one example's clipped gradient to a sum of integers: units += scale * w, each number
/// rounded to the nearest integer. w is the gradient g or, with a transform (coordinate-wise
/// clipping), (g - mean) * inverse. scale is the clip factor / grid; grid is the power of two to
/// whose multiples numbers are rounded, so the integers count its multiples. Numbers beyond +-2^22
/// (kMaxUnits) are clamped.
struct AddRounded {
  std::int32_t* units;
  const float* g;
  float scale;
  std::int64_t n;
  Transform transform = {};
};

/// Computes squares = sum_j dy_j^2 u_j and products = sum_j dy_j v_j for one example and the n
/// outputs j of a dense layer. They are A and B of dense_square(), which computes the squared norm
/// of the layer's gradient in coordinate-wise clipping. dy: gradient of the outputs. u_j = sum over
/// inputs i of x_i^2 / scale_ij^2; v_j = sum over inputs i of x_i m_ij / scale_ij^2; x: the layer's
/// inputs; m, scale: mean and scale of each weight's gradient.
struct TransformedDense {
  const float* dy;
  const float* u;
  const float* v;
  int n;
};
/// The two sums that TransformedDense computes, over the outputs of a dense layer.
struct TransformedDenseSums {
  double squares;
  double products;
};

/// Adds up the sums that `count` threads have computed, each with a 64-bit part in totals and a
/// 32-bit part in units: out = totals[0] + units[0] + totals[1] + units[1] + ... modulo 2^64. Then
/// sets all these parts to 0.
struct SumUnits {
  std::int64_t* const* totals;  ///< [count] arrays of n
  std::int32_t* const* units;   ///< [count] arrays of n
  int count;
  std::int64_t* out;
  std::int64_t n;
};

}  // namespace cudp
