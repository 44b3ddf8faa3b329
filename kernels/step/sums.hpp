#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

// Sums of clipped gradients on the CPU, as integers in units of a grid step
// (common/fixed_point.hpp). All arrays have n numbers, n a multiple of 16.

/// Adds one example's gradient g to acc: acc += factor g.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// Adds one example's clipped gradient to a sum of integers: units += scale w, each number rounded
/// to the nearest integer. w = g or, with a transform, (g - mean) inverse. scale: clip factor /
/// grid, the sum's unit. Numbers beyond +-2^22 (kMaxUnits) are clamped.
struct AddRounded {
  std::int32_t* units;
  const float* g;
  float scale;
  std::int64_t n;
  Transform transform = {};
};

/// Computes squares = sum_j dy_j^2 u_j and products = sum_j dy_j v_j, which dense_square() needs as
/// A and B. n numbers each.
struct TransformedDense {
  const float* dy;
  const float* u;
  const float* v;
  int n;
};
struct TransformedDenseSums {
  double squares;
  double products;
};

/// Completes a sum from the threads' parts: out = totals[0] + units[0] + totals[1] + units[1] + ...
/// modulo 2^64, and sets all the parts to 0.
struct SumUnits {
  std::int64_t* const* totals;  ///< [count] arrays of n
  std::int32_t* const* units;   ///< [count] arrays of n
  int count;
  std::int64_t* out;
  std::int64_t n;
};

}  // namespace cudp
