#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/accountant.hpp"

namespace cudp {

/// The largest group of units of privacy (examples, or a person's) that a certificate has an
/// epsilon for.
inline constexpr std::uint64_t kLargestGroup = 16;

/// Share of delta that pays for bounds that hold with overwhelming probability
/// (PrivacyPlan::failure).
inline constexpr double kFailureShare = 1e-9;

/// A budget that guarantees next to nothing is refused unless the user insists
/// (--allow-weak-privacy).
inline constexpr double kMaxEpsilon = 200.0;
inline constexpr double kMaxDelta = 0.1;  ///< and from here on

/// Less noise is refused: it has to be 2^16 units of the sum's grid (rounded_normal.hpp), of which
/// C may have as few as 2^20 (fixed_point.hpp).
inline constexpr double kMinNoiseMultiplier = 0x1p-4;
/// More is refused: 2^40 units at most, of which C may have 2^21.
inline constexpr double kMaxNoiseMultiplier = 0x1p18;

/// The noise of the steps from where the span before ends up to, but not including, `until`.
struct NoiseSpan {
  std::uint64_t until = 0;
  double scale = 1.0;  ///< of PrivacyPlan::noise_multiplier; finite, > 0
  bool operator==(const NoiseSpan&) const = default;
};

/// The facts that the privacy of noisy sums of clipped gradients rests on: neighbours differ by one
/// unit, of up to `group` examples, added or removed. The sampler that runs and the accountant that
/// certifies are both built from this object and from nothing else, so they cannot disagree.
struct PrivacyPlan {
  /// Each example is in each step's batch independently with probability threshold / 2^32.
  std::uint64_t sampling_threshold = 0;
  double expected_batch = 0.0;  ///< sums are divided by this, never by the batch that was drawn
  std::uint64_t steps = 0;
  double clip_norm = 0.0;         ///< C, L2 bound of one example's contribution before rounding
  double sensitivity = 0.0;       ///< C plus what rounding can add; the noise is scaled to this
  double noise_multiplier = 0.0;  ///< sigma: noise std / sensitivity, of a step of scale 1
  /// Noise of the steps, where it differs: spans that end at `steps`. Empty: every step has scale
  /// 1. Fixed before training starts, so the composition is not adaptive.
  std::vector<NoiseSpan> noise;
  /// Noisy sums besides those of the steps: how many all epochs may make, with which noise
  /// multiplier.
  std::uint64_t epoch_releases = 0;
  double epoch_noise = 0.0;
  /// What a noisy number of examples has spent of the run's epsilon for itself; 0 where it is
  /// public. The rest of the plan is of the other part of the budget.
  double count_epsilon = 0.0;
  /// The releases before the first step: MethodContext::before.
  std::vector<privacy::Release> before;
  double delta = 0.0;
  /// Part of delta that pays for bounds that hold with overwhelming probability: on a private
  /// number of examples, and on the memory of a batch on a device. No sum's privacy rests on its
  /// size.
  double failure = 0.0;
  std::uint64_t group = 1;  ///< examples of one unit: TrainingSize::unit_rows
  /// The Renyi order that the accountant must use, 0 where it may choose its bound. Where releases
  /// are chosen by looking at earlier ones, a filter adds up divergences of an order that is fixed
  /// before the first of them (Feldman & Zrnic 2021).
  double order = 0.0;
  privacy::AccountantKind accountant = privacy::AccountantKind::best;

  double sampling_rate() const { return static_cast<double>(sampling_threshold) * 0x1p-32; }
  double noise_multiplier_at(std::uint64_t step) const;
  double noise_std_at(std::uint64_t step) const { return noise_multiplier_at(step) * sensitivity; }
  bool operator==(const PrivacyPlan&) const = default;
};

/// The noisy sums of steps first <= t < last, equal neighbours together.
std::vector<privacy::Release> step_releases(const PrivacyPlan& plan, std::uint64_t first,
                                            std::uint64_t last);

/// All that has been released when `steps` steps are done: `before`, what epochs may release where
/// there is a step, the noisy sums.
std::vector<privacy::Release> releases(const PrivacyPlan& plan, std::uint64_t steps);

/// How the accountant is to bound the plan's releases.
privacy::AccountantOptions accountant_options(const PrivacyPlan& plan);

/// The epsilon that releases add up to at the plan's delta, part of which is set aside for
/// plan.failure. coarseness: see privacy::AccountantOptions; a bound all the same.
privacy::PrivacyBound guarantee(const PrivacyPlan& plan, std::vector<privacy::Release> releases,
                                double coarseness = 1.0);

/// For a checkpoint: all of a plan but `before` and `count_epsilon`.
nlohmann::ordered_json encode_plan(const PrivacyPlan& plan);
/// Throws nlohmann::json::exception or std::invalid_argument on anything that encode_plan did not
/// write.
PrivacyPlan decode_plan(const nlohmann::ordered_json& json);

}  // namespace cudp
