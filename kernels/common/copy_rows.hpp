#pragma once
#include "kernels/common/launch.hpp"

namespace cudp {

/// Kernel that copies one row per example to an array with another distance between rows: to[e, i]
/// = rows[e, i] for i < columns, for the examples e of a micro-batch. Arrays: rows [capacity,
/// columns]; to [capacity, to_stride].
struct CopyRows {
  Batch batch;
  const float* rows;
  std::int32_t columns;
  float* to;
  std::int64_t to_stride;
};

inline void validate(const CopyRows& a) {
  validate(a.batch);
  expect(a.rows && a.to && a.columns > 0 && a.to_stride >= a.columns,
         "copy: expected pointers, columns > 0 and rows that do not overlap");
}
inline LaunchShape launch_shape(const CopyRows& a) {
  return rows_shape(a.batch.capacity, a.columns);
}

}  // namespace cudp
