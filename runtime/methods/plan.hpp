#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/step/recipe.hpp"
#include "privacy/accountant.hpp"
#include "privacy/memo.hpp"

namespace cudp {

/// Largest group of units of privacy (examples, or persons) for which a certificate has an epsilon.
inline constexpr std::uint64_t kLargestGroup = 16;

/// Share of delta for bounds that hold with overwhelming probability (PrivacyPlan::failure).
inline constexpr double kFailureShare = 1e-9;

/// Limits of a budget. A budget beyond them guarantees next to nothing, and is refused without
/// --allow-weak-privacy.
inline constexpr double kMaxEpsilon = 200.0;
inline constexpr double kMaxDelta = 0.1;  ///< exclusive

/// Minimum noise multiplier. The noise must be at least 2^16 steps of the sum's grid
/// (rounded_normal.hpp), and C may be as few as 2^20 steps (fixed_point.hpp).
inline constexpr double kMinNoiseMultiplier = 0x1p-4;
/// Maximum noise multiplier. The noise may be at most 2^40 steps of the grid, and C may be 2^21
/// steps.
inline constexpr double kMaxNoiseMultiplier = 0x1p18;

/// Noise of the steps from the end of the previous span to `until`, exclusive.
struct NoiseSpan {
  std::uint64_t until = 0;
  double scale = 1.0;  ///< factor on PrivacyPlan::noise_multiplier; finite, > 0
  bool operator==(const NoiseSpan&) const = default;
};

/// Results of the accountant that were computed for a plan. They are no part of its value.
struct PlanMemo {
  std::shared_ptr<privacy::AccountantMemo> results = {};  ///< null if none are kept
  bool operator==(const PlanMemo&) const { return true; }
};

/// Facts on which the privacy of noisy sums of clipped gradients rests: neighbours differ by one
/// unit, of up to `group` examples, added or removed. The sampler that runs and the accountant that
/// certifies are both built from this object and nothing else, so they cannot disagree.
struct PrivacyPlan {
  /// Each example is in each step's batch with probability threshold / 2^32: independently of other
  /// steps if epoch_steps is 0, otherwise in exactly one step of each epoch.
  std::uint64_t sampling_threshold = 0;
  /// Steps of an epoch of random allocation, t. One release is then a whole epoch, and the number
  /// of steps a multiple of t. 0: Poisson sampling.
  std::uint64_t epoch_steps = 0;
  double expected_batch = 0.0;  ///< divisor of sums, instead of the size of the drawn batch
  std::uint64_t steps = 0;
  double clip_norm = 0.0;         ///< C, L2 bound of one example's contribution before rounding
  double sensitivity = 0.0;       ///< C plus the rounding error; the noise is scaled to this
  double noise_multiplier = 0.0;  ///< sigma: noise std / sensitivity, for a step of scale 1
  /// Noise of the steps if it varies: spans, the last of which ends at `steps`. Empty: every step
  /// has scale 1. Fixed before training starts, so the composition is not adaptive.
  std::vector<NoiseSpan> noise;
  /// Number and noise multiplier of the noisy sums that all epochs may release in addition to the
  /// steps'.
  std::uint64_t epoch_releases = 0;
  double epoch_noise = 0.0;
  /// Part of the run's epsilon that a noisy number of examples has spent for itself; 0 if the
  /// number is public. The rest of the plan concerns the other part of the budget.
  double count_epsilon = 0.0;
  /// Releases before the first step: MethodContext::before.
  std::vector<privacy::Release> before;
  double delta = 0.0;
  /// Part of delta for bounds that hold with overwhelming probability: on a private number of
  /// examples, and on the memory of a batch on a device. No sum's privacy rests on its size.
  double failure = 0.0;
  std::uint64_t group = 1;  ///< number of examples in a unit: TrainingSize::unit_rows
  /// Renyi order that the accountant must use; 0 if it may choose its bound. If releases are chosen
  /// by earlier ones, a filter adds divergences of an order that is fixed before the first of them
  /// (Feldman & Zrnic 2021).
  double order = 0.0;
  privacy::AccountantKind accountant = privacy::AccountantKind::best;
  PlanMemo memo = {};

  Draw draw() const;
  /// Returns the number of the release that step `step` is part of.
  std::uint64_t release_of(std::uint64_t step) const {
    return epoch_steps > 0 ? step / epoch_steps : step;
  }
  /// Returns the number of releases that the first `steps` steps are part of.
  std::uint64_t releases_until(std::uint64_t steps) const {
    return epoch_steps > 0 ? (steps + epoch_steps - 1) / epoch_steps : steps;
  }
  /// Returns the number of steps of the first `releases` releases.
  std::uint64_t steps_until(std::uint64_t releases) const {
    return epoch_steps > 0 ? releases * epoch_steps : releases;
  }
  double sampling_rate() const { return static_cast<double>(sampling_threshold) * 0x1p-32; }
  double noise_multiplier_at(std::uint64_t step) const;
  double noise_std_at(std::uint64_t step) const { return noise_multiplier_at(step) * sensitivity; }
  bool operator==(const PrivacyPlan&) const = default;
};

/// Returns the threshold of Poisson sampling: each of n examples is drawn with probability
/// threshold / 2^32. It is rounded up, so that the rate is never below batch / n; the rounded rate
/// is exact. Requires 0 < batch <= n.
std::uint64_t poisson_threshold(double batch, double n);

/// Returns the noisy sums of steps first <= t < last; consecutive equal ones are merged. An epoch
/// of random allocation is returned whole, if any of its steps is among them.
std::vector<privacy::Release> step_releases(const PrivacyPlan& plan, std::uint64_t first,
                                            std::uint64_t last);

/// Returns everything released after `steps` steps: `before`, the releases that epochs may make (if
/// steps > 0), and the noisy sums.
std::vector<privacy::Release> releases(const PrivacyPlan& plan, std::uint64_t steps);

/// Returns the options with which the accountant bounds the plan's releases.
privacy::AccountantOptions accountant_options(const PrivacyPlan& plan);

/// Returns the epsilon of releases at the plan's delta, part of which is reserved for plan.failure.
/// coarseness: see privacy::AccountantOptions; the result is a valid bound for any value.
privacy::PrivacyBound guarantee(const PrivacyPlan& plan, std::vector<privacy::Release> releases,
                                double coarseness = 1.0);

/// Throws InputError if examples are allocated to steps whose noise differs.
void check_allocation(const PrivacyPlan& plan);

/// Encodes a plan for a checkpoint, without `before`, `count_epsilon` and `memo`.
nlohmann::ordered_json encode_plan(const PrivacyPlan& plan);
/// Decodes a plan. Throws nlohmann::json::exception or std::invalid_argument if encode_plan did not
/// write it.
PrivacyPlan decode_plan(const nlohmann::ordered_json& json);

}  // namespace cudp
