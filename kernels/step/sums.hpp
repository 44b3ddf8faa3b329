#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

// Sums of clipped gradients in the format of common/fixed_point.hpp. All arrays have n numbers, n a
// multiple of 16.

/// Adds a single example's gradient: acc += factor * g.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// Adds scale w, rounded to the nearest integer, to units. w = g or, with a transform, (g - mean)
/// inverse. scale: clip factor / grid. Numbers beyond 2^22 units (kMaxUnits) are clamped to it.
struct AddRounded {
  std::int32_t* units;
  const float* g;
  float scale;
  std::int64_t n;
  Transform transform = {};
};

/// Computes A = sum dy^2 u and B = sum dy v of dense_square.
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

/// Computes out = totals[0] + units[0] + totals[1] + ... modulo 2^64, and clears all of them.
struct SumUnits {
  std::int64_t* const* totals;  ///< [count] arrays of n
  std::int32_t* const* units;   ///< [count] arrays of n
  int count;
  std::int64_t* out;
  std::int64_t n;
};

}  // namespace cudp
