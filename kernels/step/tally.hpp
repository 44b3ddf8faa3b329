#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/clip_rule.hpp"

namespace cudp {

/// Unit of tallied losses and norms. Each is rounded independently to an integer, so sums are
/// independent of the order, the micro-batch and the rank.
inline constexpr double kTallyUnit = 0x1p-20;
/// Largest loss or norm that is counted; larger ones count as this.
inline constexpr double kMaxTallied = 0x1p10;

/// Returns a loss or norm in units, rounded to nearest. A value above kMaxTallied, or NaN, counts
/// as kMaxTallied.
CUDP_HD std::int64_t tally_units(double x) {
  const double cut = x < kMaxTallied ? x : kMaxTallied;
  return static_cast<long long>(rint(cut * (1.0 / kTallyUnit)));
}

/// Totals of all examples trained on, on the device; loss and norm are in units of kTallyUnit.
struct Tally {
  long long loss;  ///< multiples of kTallyUnit
  long long norm;
  unsigned long long examples;
  unsigned long long clipped;
  unsigned long long non_finite;
};

CUDP_HD std::uint64_t halves_of(const Tally& t) {
  return halves_of(t.examples, t.clipped, t.non_finite);
}

/// Adds the micro-batch's numbers to *total, in a fixed order. With norms, the examples are
/// training examples: one without a finite norm counts as non_finite and adds nothing else.
struct TallyBatch {
  Batch batch;
  const float* loss;           ///< [capacity]
  const float* squared_norms;  ///< [capacity, groups], or null
  const float* factors;        ///< [capacity, groups], without class weights
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
