#pragma once
// Mean over the positions of a text, for CUDA.
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp::device {

/// Computes for each text y = mean of the vectors x(t, .) over its positions t < length, or 0 if
/// the text is empty. Unless the pointer `norm` is null, y is then divided by its Euclidean norm,
/// if that is not 0.
struct MeanOverTime {
  Batch batch;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  std::int32_t places;         ///< T, number of positions that each text has space for
  const float* x;              ///< [capacity, T, channels], vectors at the positions of each text
  float* y;                    ///< [capacity, y_planes.size()], written: the means
  Planes y_planes;             ///< layout of y: channels of one pixel
  float* norm;  ///< [capacity], norm of each mean, written; null: the mean is not divided by it
};

/// Backward pass of the mean over a text's positions: from the gradient dy of the mean, computes
/// the gradient dx(t, .) of the input for every position t < length.
struct MeanOverTimeBackward {
  Batch batch;
  const std::int32_t* length;
  std::int32_t places;
  const float* y;
  Planes y_planes;
  const float* dy;
  Planes dy_planes;
  const float* norm;
  float* dx;  ///< [capacity, T, channels], written: the input's gradient
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
/// Returns a launch shape with one block per example. batch: its capacity is the number of
/// examples.
inline LaunchShape mean_shape(const Batch& batch) {
  return {.grid = {static_cast<unsigned>(batch.capacity)}, .block = {128}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const MeanOverTime& a) { return mean_shape(a.batch); }
inline LaunchShape launch_shape(const MeanOverTimeBackward& a) { return mean_shape(a.batch); }

}  // namespace cudp::device
