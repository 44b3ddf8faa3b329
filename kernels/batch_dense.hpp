#pragma once
// What a large dense layer needs beside the BLAS product that does its work.
#include "kernels/batch.hpp"
#include "kernels/fixed_point.hpp"

namespace cudp {

/// to[e, i] = row[i], for e < rows.
struct FillRows {
  const float* row;
  int columns;
  int rows;
  float* to;
};

/// Before the weight gradient's product over examples 0 .. rows - 1: dy[e] *= factors[e]. An
/// example that is left out (factor 0, or not drawn) gets zeros in x and dy, where it may hold NaN.
struct WeighRows {
  Batch batch;
  int rows;  ///< >= batch.room
  float* x;
  int inputs;
  float* dy;
  int outputs;
  const float* factors;  ///< factor of example e at e * factor_stride
  int factor_stride;
};

/// sum[j] += v[j], on the grid.
struct AddToFixed {
  const float* v;
  std::int64_t n;
  FixedPoint* sum;
  float inverse_grid;
};

inline void validate(const FillRows& a) {
  expect(a.row && a.to && a.columns > 0 && a.rows > 0, "fill: expected pointers and sizes > 0");
}
inline LaunchShape launch_shape(const FillRows& a) {
  return strided_shape(std::int64_t{a.rows} * a.columns);
}

inline void validate(const WeighRows& a) {
  validate(a.batch);
  expect(a.x && a.dy && a.factors && a.inputs > 0 && a.outputs > 0 && a.rows >= a.batch.room,
         "weigh: expected pointers, sizes > 0 and all examples");
}
/// A block an example.
inline LaunchShape launch_shape(const WeighRows& a) {
  return {.grid = {static_cast<unsigned>(a.rows)}, .block = {256}, .shared_bytes = 0};
}

inline void validate(const AddToFixed& a) {
  expect(a.v && a.sum && a.n > 0 && a.inverse_grid > 0, "add: expected pointers, n > 0 and a grid");
}
inline LaunchShape launch_shape(const AddToFixed& a) { return strided_shape(a.n); }

}  // namespace cudp
