#pragma once
#include "kernels/common/launch.hpp"

namespace cudp {

/// Copies one row per example, to[e, i] = rows[e, i] for i < columns, for every example e of the
/// micro-batch. (It has fewer examples than its capacity if the batch ends.) Arrays: rows
/// [capacity, columns]; to [capacity, to_stride].
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
