#pragma once
#include "kernels/common/launch.hpp"

namespace cudp {

/// to[e, i] = row[i], for e < rows: the bias that a BLAS product is added to.
struct FillRows {
  const float* row;
  int columns;
  int rows;
  float* to;
};

inline void validate(const FillRows& a) {
  expect(a.row && a.to && a.columns > 0 && a.rows > 0, "fill: expected pointers and sizes > 0");
}
inline LaunchShape launch_shape(const FillRows& a) {
  return strided_shape(std::int64_t{a.rows} * a.columns);
}

}  // namespace cudp
