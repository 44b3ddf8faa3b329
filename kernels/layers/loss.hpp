#pragma once
#include "kernels/common/counted_planes.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

namespace device {

/// Computes the loss of each example of a micro-batch. Unless logit_gradient is null, also computes
/// the loss's gradient with respect to the logits. Depending on the kind of loss, the logits are
/// compared with the example's class label, or with its target, a number.
struct LossValues {
  Batch batch;
  Loss loss;
  int outputs;
  const float* logits;            ///< [capacity, outputs]
  const std::uint8_t* label;      ///< [capacity]
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on; null: 0, 1, ...
  const float* targets;           ///< [data set], or null
  float huber;                    ///< threshold h of Loss::huber
  /// Weight of each class, [classes]; null: all are 1. An example's gradient is multiplied by the
  /// weight of its class; its loss is not.
  const float* class_weights;
  float* value;           ///< [capacity]
  float* logit_gradient;  ///< [capacity, outputs], scratch; null if no gradient is wanted
  float* gradient;        ///< [capacity, gradient_planes.size()]
  CountedPlanes gradient_planes;
  Precision gradient_as = Precision::fp32;  ///< tf32: the gradient is rounded to TF32
};

inline void validate(const LossValues& a) {
  validate(a.batch);
  expect(a.outputs > 0 && a.logits && a.label && a.value,
         "loss: expected outputs > 0 and pointers");
  expect(has_target(a.loss) == (a.targets != nullptr) && (a.targets == nullptr || a.outputs == 1),
         "loss: expected targets, and one output, with a loss that has a target only");
  expect((a.logit_gradient == nullptr) == (a.gradient == nullptr) &&
             (a.gradient == nullptr || a.gradient_planes.pixels() == a.outputs),
         "loss: expected a gradient of the size of the logits");
}
inline LaunchShape launch_shape(const LossValues& a) { return strided_shape(a.batch.capacity, 64); }

}  // namespace device

}  // namespace cudp
