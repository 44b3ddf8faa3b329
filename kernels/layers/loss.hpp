#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

namespace device {

/// Loss of each example and, unless null, its gradient by the logits.
struct LossValues {
  Batch batch;
  Loss loss;
  int outputs;
  const float* logits;        ///< [capacity, outputs]
  const std::uint8_t* label;  ///< [capacity]
  float* value;               ///< [capacity]
  float* logit_gradient;      ///< [capacity, outputs], scratch; null if no gradient is wanted
  float* gradient;            ///< [capacity, gradient_planes.size()]
  Planes gradient_planes;
};

}  // namespace device

/// Totals of what was seen. The device keeps one for training and one for evaluation.
struct Tally {
  double loss;
  double norm;
  unsigned long long examples;
  unsigned long long clipped;
  unsigned long long non_finite;
};

/// *total += the micro-batch's, in a fixed order. With norms: of training examples; one without a
/// finite norm counts as non_finite and adds nothing else.
struct TallyBatch {
  Batch batch;
  const float* loss;           ///< [capacity]
  const float* squared_norms;  ///< [capacity, groups], or null
  const float* factors;        ///< [capacity, groups]
  int groups;
  Tally* total;
};

namespace device {

inline void validate(const LossValues& a) {
  validate(a.batch);
  expect(a.outputs > 0 && a.logits && a.label && a.value,
         "loss: expected outputs > 0 and pointers");
  expect((a.logit_gradient == nullptr) == (a.gradient == nullptr) &&
             (a.gradient == nullptr || a.gradient_planes.pixels() == a.outputs),
         "loss: expected a gradient of the size of the logits");
}
inline LaunchShape launch_shape(const LossValues& a) { return strided_shape(a.batch.capacity, 64); }

}  // namespace device

inline void validate(const TallyBatch& a) {
  validate(a.batch);
  expect(a.loss && a.total && (a.squared_norms == nullptr) == (a.factors == nullptr),
         "tally: expected pointers");
}
inline LaunchShape launch_shape(const TallyBatch&) {
  return {.grid = {1}, .block = {256}, .shared_bytes = 0};
}

}  // namespace cudp
