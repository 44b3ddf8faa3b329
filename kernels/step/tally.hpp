#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/clip_rule.hpp"

namespace cudp {

/// Unit of the sums of losses and of gradient norms. Each loss or norm is rounded to an integer
/// number of units before it is added, so the sums do not depend on the order of the examples, the
/// size of micro-batches or the number of ranks (processes).
inline constexpr double kTallyUnit = 0x1p-20;
/// Largest loss or norm that is added to the sums; a larger one counts as this number.
inline constexpr double kMaxTallied = 0x1p10;

/// Returns a loss or norm x as an integer multiple of kTallyUnit, rounded to nearest. If x is above
/// kMaxTallied or NaN, it counts as kMaxTallied.
CUDP_HD std::int64_t tally_units(double x) {
  const double cut = x < kMaxTallied ? x : kMaxTallied;
  return static_cast<long long>(rint(cut * (1.0 / kTallyUnit)));
}

/// Totals over all examples trained on since the totals were last set to 0, in device memory. Loss
/// and norm are integers, in units of kTallyUnit.
struct Tally {
  long long loss;  ///< multiples of kTallyUnit
  long long norm;
  unsigned long long examples;
  unsigned long long clipped;
  unsigned long long non_finite;
};

/// Returns twice the sum over all counted examples of b - 1/2, modulo 2^64, with b = 1 if an
/// example's gradient was not clipped, else 0. t: the totals.
CUDP_HD std::uint64_t halves_of(const Tally& t) {
  return halves_of(t.examples, t.clipped, t.non_finite);
}

/// Adds the losses, gradient norms and counts of a micro-batch's examples to *total, in a fixed
/// order. An example whose gradient is not finite is counted as non_finite, and its loss and norm
/// are not added. If squared_norms is null, only the losses and the number of examples are added.
struct TallyBatch {
  Batch batch;
  const float* loss;           ///< [capacity]
  const float* squared_norms;  ///< [capacity, groups], or null
  const float* factors;        ///< [capacity, groups], clip factors without class weights
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
