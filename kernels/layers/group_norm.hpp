#pragma once
#include "kernels/common/counted_planes.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/layers/image.hpp"

namespace cudp {

/// Group normalisation (Wu & He 2018) of one example on the CPU: y = (x - mean) inverse weight +
/// bias, with inverse = 1 / sqrt(variance + epsilon). The channels are divided into `groups` groups
/// of equal size; mean and variance (divided by n, not n - 1) are over the pixels and channels of a
/// group. The padding channels of y (those after the last real channel of a pixel) are set to 0.
struct GroupNormForward {
  ImageLayout in;
  ImageLayout out;
  int groups;
  float epsilon;
  const float* weight;  ///< [channels], factor of each channel
  const float* bias;
  const float* x;
  float* y;
  float* mean;     ///< [groups], written: mean of each group
  float* inverse;  ///< [groups], written: 1 / sqrt(variance + epsilon)
};

/// Gradients of group normalisation for one example on the CPU: dweight[c] = sum over the pixels of
/// channel c of dy times the normalised x; dbias[c] = sum over its pixels of dy; and dx, unless
/// that pointer is null. In all three, padding channels (those after the last real channel of a
/// pixel) are set to 0.
struct GroupNormBackward {
  ImageLayout in;
  ImageLayout out;
  int groups;
  const float* weight;
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse;
  float* dx;
  float* dweight;  ///< [in.stride], written: gradient of weight
  float* dbias;    ///< [in.stride], written: gradient of bias
};

// --- CUDA ---

namespace device {

/// Group normalisation (Wu & He 2018) of a micro-batch: y = (x - mean) * inverse * weight + bias,
/// with inverse = 1 / sqrt(variance + epsilon). The channels are divided into `groups` groups of
/// equal size; mean and variance are over the pixels and channels of a group of one example.
struct GroupNorm {
  Batch batch;
  int groups;  ///< number of groups; a divisor of the number of channels
  float epsilon;
  const float* weight;  ///< [channels], factor of each channel
  const float* bias;
  const float* x;
  CountedPlanes x_planes;
  float* y;
  CountedPlanes y_planes;
  float* statistics;  ///< [capacity, groups, 2]: mean and 1 / sqrt(variance + epsilon), written
  Precision y_as = Precision::fp32;  ///< tf32: y is rounded to TF32
};

/// Gradients of group normalisation for each example: dweight = sum over a channel's pixels of dy
/// (x - mean) inverse; dbias = sum over its pixels of dy; the squared norm of both for each group
/// of channels; and the input's gradient dx, unless that pointer is null. inverse = 1 /
/// sqrt(variance + epsilon).
struct GroupNormBackward {
  Batch batch;
  int groups;
  const float* weight;
  const float* x;
  CountedPlanes x_planes;
  const float* dy;
  CountedPlanes dy_planes;
  const float* statistics;
  float* dx;
  CountedPlanes dx_planes;
  float* gradient;  ///< [capacity, 2 channels]: dweight, then dbias
  float* parts;     ///< [groups, capacity], written: squared norm of each group's gradient
  /// Transform of each element g of the gradient before it is squared for the norm, (g -
  /// transform.mean) * transform.inverse (coordinate-wise clipping). Arrays of [2 channels]; null
  /// pointers: none.
  Transform transform = {};
  Precision dx_as = Precision::fp32;  ///< tf32: dx is rounded to TF32
};

}  // namespace device

/// Adds the clipped gradients of a micro-batch to a sum: sum += sum over examples e of factors[e]
/// rows[e], where rows [capacity, columns] are the examples' gradients. Each number is rounded
/// independently before it is added. Examples with factor 0 are skipped, because their gradients
/// may contain NaN.
struct WeightedRows {
  Batch batch;
  const float* rows;
  std::int32_t columns;
  const float* factors;  ///< example e's factor is at e * factor_stride
  std::int32_t factor_stride;
  FixedPoint* sum;        ///< [columns], sum of the clipped gradients, added to
  const SumScale* scale;  ///< each added number is rounded to a multiple of scale->grid
  /// Transform of each element g of a gradient before it is multiplied by the factor and added, (g
  /// - transform.mean) * transform.inverse (coordinate-wise clipping). Arrays of [columns]; null
  /// pointers: none.
  Transform transform = {};
};

namespace device {

inline void validate(const GroupNorm& a) {
  validate(a.batch);
  expect(a.groups > 0 && a.x_planes.channels % a.groups == 0, "group norm: expected whole groups");
  expect(same_pixels(a.x_planes, a.y_planes), "group norm: expected equal sizes");
  expect(a.x && a.y && a.weight && a.bias && a.statistics, "group norm: expected pointers");
  expect(a.batch.capacity <= 65535, "group norm: expected a micro-batch of at most 65535");
}

inline void validate(const GroupNormBackward& a) {
  validate(a.batch);
  expect(a.groups > 0 && a.x_planes.channels % a.groups == 0, "group norm: expected whole groups");
  expect(a.x && a.dy && a.weight && a.statistics && a.gradient && a.parts,
         "group norm: expected pointers");
  expect(a.batch.capacity <= 65535, "group norm: expected a micro-batch of at most 65535");
}

}  // namespace device

inline void validate(const WeightedRows& a) {
  validate(a.batch);
  expect(a.rows && a.factors && a.sum && a.columns > 0 && a.scale,
         "weighted rows: expected pointers, columns and a grid");
}

/// Returns a launch shape with one thread block per example and group of channels. groups: number
/// of groups of channels. batch: its capacity is the number of examples.
inline LaunchShape group_norm_shape(int groups, const Batch& batch) {
  return {.grid = {static_cast<unsigned>(groups), static_cast<unsigned>(batch.capacity)},
          .block = {128},
          .shared_bytes = 0};
}

namespace device {

inline LaunchShape launch_shape(const GroupNorm& a) { return group_norm_shape(a.groups, a.batch); }
inline LaunchShape launch_shape(const GroupNormBackward& a) {
  return group_norm_shape(a.groups, a.batch);
}

}  // namespace device

inline constexpr int kRowsPerBlock = 32;  // examples per block, as in examples_per_block()
inline LaunchShape launch_shape(const WeightedRows& a) {
  return {.grid = {divide_up(a.columns, 128), divide_up(a.batch.capacity, kRowsPerBlock)},
          .block = {128},
          .shared_bytes = 0};
}

}  // namespace cudp
