#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/clip_rule.hpp"

namespace cudp {

/// Losses and norms are tallied in units of this, each one's by itself: integers, whose sum depends
/// on no order, micro-batch or rank.
inline constexpr double kTallyUnit = 0x1p-20;
/// What counts of one loss or norm at most.
inline constexpr double kMaxTallied = 0x1p10;

/// A loss or norm in units, rounded to nearest; more than kMaxTallied, or NaN, counts as that.
CUDP_HD std::int64_t tally_units(double x) {
  const double cut = x < kMaxTallied ? x : kMaxTallied;
  return static_cast<long long>(rint(cut * (1.0 / kTallyUnit)));
}

/// Totals of what was seen in training. The device keeps one.
struct Tally {
  long long loss;  ///< in units of kTallyUnit, as the norm
  long long norm;
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
