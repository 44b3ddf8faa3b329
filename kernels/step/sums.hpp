#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

// Sums of clipped gradients, as common/fixed_point.hpp has them. All arrays: n numbers, n a
// multiple of 16.

/// acc += factor * g, for a single example's gradient.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// units += scale w, rounded to the nearest, w = g or, with a transform, (g - mean) inverse; scale:
/// a factor over the grid. What is beyond 2^22 units (kMaxUnits) becomes that.
struct AddRounded {
  std::int32_t* units;
  const float* g;
  float scale;
  std::int64_t n;
  Transform transform = {};
};

/// A = sum dy^2 u and B = sum dy v of dense_square.
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

/// out = totals[0] + units[0] + totals[1] + ... modulo 2^64; all of them are cleared.
struct SumUnits {
  std::int64_t* const* totals;  ///< [count] arrays of n
  std::int32_t* const* units;   ///< [count] arrays of n
  int count;
  std::int64_t* out;
  std::int64_t n;
};

}  // namespace cudp
