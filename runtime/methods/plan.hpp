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

/// Largest number of units of privacy (examples, or persons) changed together for which a
/// certificate states an epsilon (group privacy).
inline constexpr std::uint64_t kLargestGroup = 16;

/// Fraction of delta that is reserved for bounds that fail with a tiny probability: the bound on a
/// private number of examples, and the bound on the size of a batch that fits in memory
/// (PrivacyPlan::failure).
inline constexpr double kFailureShare = 1e-9;

/// Largest epsilon and delta of a budget without --allow-weak-privacy. A larger budget guarantees
/// next to nothing.
inline constexpr double kMaxEpsilon = 200.0;
inline constexpr double kMaxDelta = 0.1;  ///< delta must be below this

/// Minimum noise multiplier: with it, the noise is large enough even for the smallest clipping
/// norm. In steps g of the grid of a sum, the noise must be at least 2^16 g (rounded_normal.hpp),
/// and the clipping norm may be as small as 2^20 g (fixed_point.hpp).
inline constexpr double kMinNoiseMultiplier = 0x1p-4;
/// Maximum noise multiplier: with it, the noise is not too large even for the largest clipping
/// norm. In steps g of the grid of a sum, the noise may be at most 2^40 g, and the clipping norm
/// may be as large as 2^21 g.
inline constexpr double kMaxNoiseMultiplier = 0x1p18;

/// Consecutive steps with the same noise: from the end of the previous span to step `until`,
/// exclusive.
struct NoiseSpan {
  std::uint64_t until = 0;
  /// Factor by which the plan's noise multiplier (PrivacyPlan::noise_multiplier) is multiplied in
  /// the steps of this span; finite, > 0.
  double scale = 1.0;
  bool operator==(const NoiseSpan&) const = default;
};

/// Cache of the accountant's results for a plan. Comparisons of two plans ignore it.
struct PlanMemo {
  std::shared_ptr<privacy::AccountantMemo> results = {};  ///< null: no cache
  bool operator==(const PlanMemo&) const { return true; }
};

/// Everything on which the privacy of training with noisy sums of clipped gradients depends.
/// Neighbouring data sets differ by one unit of privacy, of up to `group` examples, added or
/// removed. The sampler that runs and the accountant that certifies are both built from this object
/// alone, so they cannot disagree.
struct PrivacyPlan {
  /// Probability with which an example is in a step's batch, times 2^32. An example is drawn
  /// independently in each step if epoch_steps is 0, otherwise in exactly one random step of each
  /// epoch.
  std::uint64_t sampling_threshold = 0;
  /// Number t of steps per epoch under random allocation; 0: Poisson sampling. With random
  /// allocation one release is a whole epoch, and the number of steps is a multiple of t.
  std::uint64_t epoch_steps = 0;
  double expected_batch = 0.0;  ///< divisor of sums, instead of the size of the drawn batch
  std::uint64_t steps = 0;
  /// Clipping norm C: maximum L2 norm of one example's contribution before rounding.
  double clip_norm = 0.0;
  /// Sensitivity of a sum to one example: clip_norm plus the effect of rounding. The noise is a
  /// multiple of it (noise_multiplier).
  double sensitivity = 0.0;
  /// Noise multiplier sigma: standard deviation of the noise / sensitivity, for steps with scale 1.
  double noise_multiplier = 0.0;
  /// Factors on the noise multiplier: consecutive spans of steps with the same factor (scale), the
  /// last of which ends at `steps`. Empty if all steps have scale 1. Fixed before training starts,
  /// so the composition is not adaptive.
  std::vector<NoiseSpan> noise;
  /// Maximum number of noisy sums that the whole run releases at the start of epochs, in addition
  /// to those of steps.
  std::uint64_t epoch_releases = 0;
  double epoch_noise = 0.0;  ///< noise multiplier of the sums at the start of epochs
  /// Epsilon that was spent on releasing a noisy number of examples; 0 if the number is public. All
  /// other fields are about the rest of the budget.
  double count_epsilon = 0.0;
  /// Releases that are charged to the same budget before the first step, e.g. noisy statistics from
  /// which features are computed.
  std::vector<privacy::Release> before;
  double delta = 0.0;
  /// Part of delta for bounds that fail with a tiny probability: on a private number of examples,
  /// and on the memory of a batch on a device. The noise does not depend on it.
  double failure = 0.0;
  std::uint64_t group = 1;  ///< maximum number of examples of one unit of privacy
  /// Order at which the accountant must add Renyi divergences; 0: it uses its best bound. If
  /// releases depend on earlier ones, the order must be fixed before the first of them (Feldman &
  /// Zrnic 2021).
  double order = 0.0;
  privacy::AccountantKind accountant = privacy::AccountantKind::best;
  PlanMemo memo = {};

  Draw draw() const;
  /// Returns the index of the release that contains a step: the step's own index or, under random
  /// allocation, the index of its epoch.
  std::uint64_t release_of(std::uint64_t step) const {
    return epoch_steps > 0 ? step / epoch_steps : step;
  }
  /// Returns the number of releases that contain the first `steps` steps: one release per step or,
  /// under random allocation, per epoch.
  std::uint64_t releases_until(std::uint64_t steps) const {
    return epoch_steps > 0 ? (steps + epoch_steps - 1) / epoch_steps : steps;
  }
  /// Returns the number of steps that the first `releases` releases contain: one step per release
  /// or, under random allocation, a whole epoch.
  std::uint64_t steps_until(std::uint64_t releases) const {
    return epoch_steps > 0 ? releases * epoch_steps : releases;
  }
  double sampling_rate() const { return static_cast<double>(sampling_threshold) * 0x1p-32; }
  double noise_multiplier_at(std::uint64_t step) const;
  double noise_std_at(std::uint64_t step) const { return noise_multiplier_at(step) * sensitivity; }
  bool operator==(const PrivacyPlan&) const = default;
};

/// Returns the threshold of Poisson sampling: batch / n * 2^32, rounded up. A step draws each of
/// the n examples with probability threshold / 2^32 exactly, which is batch / n or slightly more.
/// Requires 0 < batch <= n.
std::uint64_t poisson_threshold(double batch, double n);

/// Returns the releases (noisy gradient sums) of steps first <= t < last; consecutive equal ones
/// are merged into one entry with a count. An epoch of random allocation is returned whole, if any
/// of its steps is among them.
std::vector<privacy::Release> step_releases(const PrivacyPlan& plan, std::uint64_t first,
                                            std::uint64_t last);

/// Returns everything that is released in the first `steps` steps: plan.before, the releases at the
/// start of epochs (if steps > 0), and the noisy gradient sums.
std::vector<privacy::Release> releases(const PrivacyPlan& plan, std::uint64_t steps);

/// Returns the accountant's options for the plan: the kind of accountant, and the Renyi order if
/// the plan fixes one.
privacy::AccountantOptions accountant_options(const PrivacyPlan& plan);

/// Returns a bound on the epsilon of the releases at the plan's delta less plan.failure.
/// coarseness: larger is faster and looser (privacy::AccountantOptions); the bound is valid for any
/// value.
privacy::PrivacyBound guarantee(const PrivacyPlan& plan, std::vector<privacy::Release> releases,
                                double coarseness = 1.0);

/// Returns a bound on the epsilon of a composition of releases at the plan's delta less
/// plan.failure. Takes it from the plan's cache if it was computed before. Throws
/// std::invalid_argument if a number is out of range, std::domain_error if no bound is known.
privacy::PrivacyBound epsilon_bound(const PrivacyPlan& plan,
                                    const privacy::Composition& composition,
                                    const privacy::AccountantOptions& options);

/// Throws InputError if the plan has random allocation (epoch_steps > 0) and noise that differs
/// between steps.
void check_allocation(const PrivacyPlan& plan);

/// Encodes a plan for a checkpoint, without `before`, `count_epsilon` and `memo`.
nlohmann::ordered_json encode_plan(const PrivacyPlan& plan);
/// Decodes a plan. Throws nlohmann::json::exception or std::invalid_argument if encode_plan did not
/// write it.
PrivacyPlan decode_plan(const nlohmann::ordered_json& json);

}  // namespace cudp
