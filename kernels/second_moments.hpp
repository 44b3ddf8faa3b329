#pragma once
// Sums of x x^T over rows, and projections of rows: principal components
// (runtime/features/pca.hpp).
#include <cstdint>

namespace cudp {

/// Rows of a covariance are whole numbers of 2^-kRowBits: products are multiples of 2^-26 and, for
/// rows of norm at most 1, sums of up to 2^27 rows are below 2^53 of those. Every sum is exact, in
/// any order and with or without fused multiply-adds.
inline constexpr int kRowBits = 13;
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 27;

/// Columns are padded to a multiple of this, with zeros.
inline constexpr int kColumnTile = 32;

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
