#pragma once
// Sums of x x^T over rows x of a table, and projections of rows, for principal components
// (runtime/features/pca.hpp).
#include <cstdint>

namespace cudp {

/// The number of columns of a table is padded with zeros to a multiple of this number.
inline constexpr int kColumnTile = 32;

/// Adds second moments of a table's rows: sum[i, j] += sum over r of rows[r, i] * rows[r, j], for
/// begin <= i < end and j >= (i rounded down to a multiple of kColumnTile). Smaller j are not
/// written, because the matrix is symmetric. Arrays: rows [count, stride]; sum [stride, stride].
///
/// Requires that begin and end are multiples of 4, and that stride is a multiple of kColumnTile.
/// Requires rows of whole numbers, so small that sums of products stay below 2^53. The sums are
/// then exact, in any order and with or without fused multiply-adds.
struct SecondMoments {
  const double* rows;
  std::int64_t count;
  std::int64_t stride;
  int begin;
  int end;
  double* sum;
};

/// Projects one row x of a table onto `outputs` directions: out[k] = sum over i of x[i]
/// directions[i, k]. Arrays: x [inputs]; directions [inputs, outputs]; out [outputs]. outputs is a
/// multiple of 16.
struct ProjectRow {
  const float* x;
  const float* directions;
  int inputs;
  int outputs;
  float* out;
};

}  // namespace cudp
