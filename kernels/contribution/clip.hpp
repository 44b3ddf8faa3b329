#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/contribution/sum_scale.hpp"

namespace cudp {

/// Computes the squared norm of a dense layer's gradient for each example e: parts[e] = (|x_e|^2 +
/// 1) |dy_e|^2. The gradient is never formed; it would be the outer product of input x and output
/// gradient dy for the weights, and dy for the bias.
struct DenseGradientNorm {
  Batch batch;
  const float* x;  ///< [capacity, inputs]
  int inputs;
  const float* dy;  ///< [capacity, outputs]
  int outputs;
  float* parts;  ///< [capacity]
};

inline void validate(const DenseGradientNorm& a) {
  validate(a.batch);
  expect(a.x && a.dy && a.parts && a.inputs > 0 && a.outputs > 0,
         "dense norm: expected pointers and sizes > 0");
}
/// Returns a launch shape with one warp per example.
inline LaunchShape launch_shape(const DenseGradientNorm& a) {
  return strided_shape(std::int64_t{a.batch.capacity} * 32);
}

namespace device {

/// Computes clip factors: for each example and each group (layer with parameters), the factor by
/// which the group's gradient is multiplied to clip it. `parts` [., capacity] has partial sums of
/// squared norms. An example's squared gradient norm of group g is the sum of rows group_parts[g]
/// .. group_parts[g + 1] - 1 of `parts`, added in ascending order of the rows.
struct Clip {
  Batch batch;
  ClippedGradient clip;
  const SumScale* scale;  ///< clipping norm of the step, in device memory
  const float* parts;
  const std::int32_t* group_parts;  ///< [groups + 1]
  int groups;
  float* squared_norms;  ///< [capacity, groups], written
  float* factors;        ///< [capacity, groups], written; all 0 for a non-finite example
  /// Weights of the classes, each in [0, 1]; null: all are 1. After clipping, an example's factors
  /// are multiplied by the weight of its class. A bound on the norm of the clipped gradient
  /// therefore also holds for the weighted gradient.
  const float* class_weights;
  const std::uint8_t* label;  ///< [capacity]
  /// Clip factors before they are multiplied by class weights, [capacity, groups]; written only if
  /// class_weights is not null.
  float* clip_factors;
};

/// Second stage of importance sampling for the examples that were drawn: computes the factor that
/// an example's gradient is multiplied by in the sum, 1 / norm if it is accepted, else 0. The
/// factor is the same for all layers. Stores the gradient's norm in norms[], for the next time that
/// the example may be drawn.
struct Accept {
  Batch batch;
  const ImportanceRule* rule;     ///< parameters of the epoch
  RandomStream stream;            ///< Stream::acceptance
  std::int64_t first;             ///< index of example 0's word in the stream
  const std::uint64_t* step;      ///< number of the step; replaces stream.step
  const std::uint32_t* examples;  ///< indices of the batch's examples in the data set
  float* norms;
  const float* parts;
  const std::int32_t* group_parts;
  int groups;
  float* squared_norms;
  float* factors;
};

/// Kernel that stores the gradient norms of a micro-batch, for importance sampling:
/// norms[batch.first + e] = norm of the gradient of example e, or 0 if that norm is not finite. The
/// squared norm is the sum of part_count rows of parts [., capacity].
struct Norms {
  Batch batch;
  const float* parts;
  int part_count;
  float* norms;
};

inline void validate(const Clip& a) {
  validate(a.batch);
  expect(a.scale && a.clip.stability > 0, "clip: expected a scale, and stability > 0");
  expect(a.parts && a.group_parts && a.groups > 0 && a.squared_norms && a.factors,
         "clip: expected pointers");
  expect(a.class_weights == nullptr || (a.label && a.clip_factors),
         "clip: expected labels with class weights");
}
inline void validate(const Accept& a) {
  validate(a.batch);
  expect(a.rule && a.step && a.examples && a.norms && a.parts && a.group_parts && a.groups > 0 &&
             a.squared_norms && a.factors,
         "accept: expected pointers");
}
inline LaunchShape launch_shape(const Accept& a) { return strided_shape(a.batch.capacity, 64); }

inline void validate(const Norms& a) {
  validate(a.batch);
  expect(a.parts && a.part_count > 0 && a.norms, "norms: expected pointers and parts");
}
inline LaunchShape launch_shape(const Norms& a) { return strided_shape(a.batch.capacity, 64); }

inline LaunchShape launch_shape(const Clip& a) { return strided_shape(a.batch.capacity, 64); }

}  // namespace device

}  // namespace cudp
