#pragma once
// Sums of x x^T over rows, and projections of rows: principal components
// (runtime/features/pca.hpp).
#include <cstdint>

namespace cudp {

/// Columns are padded to a multiple of this, with zeros.
inline constexpr int kColumnTile = 32;

/// Rows hold whole numbers small enough for sums of products to stay below 2^53: they are then
/// exact, in any order and with or without fused multiply-adds.
///
/// sum[i, j] += sum over rows r of rows[r, i] rows[r, j], for begin <= i < end and j >= i rounded
/// down to a tile (below that nothing is written).
/// rows [count, stride]; sum [stride, stride]; begin, end multiples of 4; stride of kColumnTile.
struct SecondMoments {
  const double* rows;
  std::int64_t count;
  std::int64_t stride;
  int begin;
  int end;
  double* sum;
};

/// out[k] = sum over i of x[i] directions[i, k], k < outputs, a multiple of 16.
/// x [inputs]; directions [inputs, outputs]; out [outputs].
struct ProjectRow {
  const float* x;
  const float* directions;
  int inputs;
  int outputs;
  float* out;
};

}  // namespace cudp
