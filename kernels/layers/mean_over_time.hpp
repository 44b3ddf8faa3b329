#pragma once
// Mean of a sequence over a text's own positions. CUDA.
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp::device {

/// Computes y = mean of x(t, .) over t < length, or 0 for an empty text. If `norm` is given, y is
/// divided by its Euclidean norm unless that is 0.
struct MeanOverTime {
  Batch batch;
  const std::int32_t* length;  ///< [capacity]
  std::int32_t places;         ///< T, number of positions of a text
  const float* x;              ///< [capacity, T, channels]
  float* y;                    ///< [capacity, y_planes.size()]
  Planes y_planes;             ///< channels of one pixel
  float* norm;  ///< [capacity], norm of the mean, written; null to leave the mean undivided
};

/// Computes dx(t, .) for t < length.
struct MeanOverTimeBackward {
  Batch batch;
  const std::int32_t* length;
  std::int32_t places;
  const float* y;
  Planes y_planes;
  const float* dy;
  Planes dy_planes;
  const float* norm;
  float* dx;  ///< [capacity, T, channels]
};

inline void validate(const MeanOverTime& a) {
  validate(a.batch);
  expect(a.length && a.x && a.y && a.places > 0 && a.y_planes.channels == a.y_planes.pixels(),
         "mean: expected pointers, places and one pixel");
}
inline void validate(const MeanOverTimeBackward& a) {
  validate(a.batch);
  expect(a.length && a.y && a.dy && a.dx && a.places > 0 &&
             a.y_planes.pixels() == a.dy_planes.pixels(),
         "mean: expected pointers, places and equal sizes");
}
/// Launch shape with one block per example.
inline LaunchShape mean_shape(const Batch& batch) {
  return {.grid = {static_cast<unsigned>(batch.capacity)}, .block = {128}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const MeanOverTime& a) { return mean_shape(a.batch); }
inline LaunchShape launch_shape(const MeanOverTimeBackward& a) { return mean_shape(a.batch); }

}  // namespace cudp::device
