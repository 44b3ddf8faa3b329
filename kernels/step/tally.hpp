#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/step/clip_rule.hpp"

namespace cudp {

/// Totals of what was seen. The device keeps one for training and one for evaluation.
struct Tally {
  double loss;
  double norm;
  unsigned long long examples;
  unsigned long long clipped;
  unsigned long long non_finite;
};

CUDP_HD std::uint64_t halves_of(const Tally& t) {
  return halves_of(t.examples, t.clipped, t.non_finite);
}

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

inline void validate(const TallyBatch& a) {
  validate(a.batch);
  expect(a.loss && a.total && (a.squared_norms == nullptr) == (a.factors == nullptr),
         "tally: expected pointers");
}
inline LaunchShape launch_shape(const TallyBatch&) {
  return {.grid = {1}, .block = {256}, .shared_bytes = 0};
}

}  // namespace cudp
