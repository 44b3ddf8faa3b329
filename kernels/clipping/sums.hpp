#pragma once
#include <cstdint>

#include "kernels/clipping/coordinates.hpp"

namespace cudp {

// Sums of clipped gradients. A few examples are added in float32; then that partial sum is rounded
// to a grid coarse enough that adding grid values in double is exact. Exact sums do not depend on
// their order, so neither on the number of threads. All arrays: n floats, n a multiple of 16.

/// acc += factor * g.
struct AddScaled {
  float* acc;
  const float* g;
  float factor;
  std::int64_t n;
};

/// total += acc rounded to a multiple of the grid, in units of it; then acc = 0. With a transform,
/// of (acc - factor_sum mean) inverse in place of acc.
/// Exact while |acc| < 2^50 grid and |total| < 2^53 grid.
struct RoundToGrid {
  float* acc;
  double* total;
  double inverse_grid;  ///< a power of two
  std::int64_t n;
  Transform transform = {};
  float factor_sum = 0.0f;
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

/// out = grid * (totals[0] + totals[1] + ...), rounded once. The totals are cleared.
struct ReduceSums {
  double* const* totals;  ///< [count] arrays of n
  int count;
  double grid;
  float* out;
  std::int64_t n;
};

}  // namespace cudp
