#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/accountant.hpp"

namespace cudp {

enum class Neighbours { add_or_remove_one };

/// The largest group of examples (a user's, say) that a certificate has an epsilon for.
inline constexpr int kLargestGroup = 16;

/// Share of delta that pays for bounds that hold with overwhelming probability: on a private number
/// of examples, and on the size of a batch.
inline constexpr double kFailureShare = 1e-9;

/// What promises next to nothing is refused unless the user insists (--allow-weak-privacy).
inline constexpr double kMostEpsilon = 200.0;
inline constexpr double kMostDelta = 0.1;  ///< and from here on

/// The noise of the steps from where the span before ends up to, but not including, `until`.
struct NoiseSpan {
  std::uint64_t until = 0;
  double scale = 1.0;  ///< of PrivacyPlan::noise_multiplier; finite, > 0
  bool operator==(const NoiseSpan&) const = default;
};

/// What the privacy of a run rests on. The sampler that runs and the accountant that certifies are
/// both built from this object and from nothing else, so they cannot disagree.
struct PrivacyPlan {
  Neighbours neighbours = Neighbours::add_or_remove_one;
  /// Each example is in each step's batch independently with probability threshold / 2^32.
  std::uint64_t sampling_threshold = 0;
  double expected_batch = 0.0;  ///< sums are divided by this, never by the batch that was drawn
  /// No sum has more examples, but for `failure`: what the sums' grid follows from.
  std::uint64_t largest_sum = 0;
  std::uint64_t steps = 0;
  double clip_norm = 0.0;         ///< C, L2 bound of one example's contribution before rounding
  double sensitivity = 0.0;       ///< C plus what rounding can add; the noise is scaled to this
  double noise_multiplier = 0.0;  ///< sigma: noise std / sensitivity, of a step of scale 1
  /// Where steps differ in their noise: spans that end at `steps`. Empty: every step has scale 1.
  /// Fixed before training starts, so the composition is not adaptive.
  std::vector<NoiseSpan> noise;
  /// Noisy sums besides those of the steps: how many all epochs may make, with which noise
  /// multiplier.
  std::uint64_t epoch_releases = 0;
  double epoch_noise = 0.0;
  double delta = 0.0;
  /// Standard deviation of the noise on the number of examples (sensitivity 1), 0 if that is
  /// public.
  double size_noise = 0.0;
  /// Noise multiplier of a release that features rest on (principal components, or the channels'
  /// moments), 0 without one.
  double feature_noise = 0.0;
  /// Probability that a batch, or the number of examples, is larger than `sensitivity` and
  /// `largest_sum` allow for; part of delta.
  double failure = 0.0;
  /// The Renyi order that the accountant must use, 0 where it may choose its bound. Where the rest
  /// of the plan depends on a released noisy size, composition is adaptive, and its order is fixed
  /// beforehand (Feldman & Zrnic 2021).
  double order = 0.0;
  privacy::Accountant accountant = privacy::Accountant::best;

  double sampling_rate() const { return static_cast<double>(sampling_threshold) * 0x1p-32; }
  double noise_multiplier_at(std::uint64_t step) const;
  double noise_std_at(std::uint64_t step) const { return noise_multiplier_at(step) * sensitivity; }
  bool operator==(const PrivacyPlan&) const = default;
};

/// The noisy sums of steps first <= t < last, a phase for each stretch of equal noise.
std::vector<privacy::Phase> step_phases(const PrivacyPlan& plan, std::uint64_t first,
                                        std::uint64_t last);

/// What the plan releases in its first `steps` steps: the noisy number of examples, where that is
/// not public, and the noisy covariance, where there is one, then the noisy sums.
std::vector<privacy::Phase> releases(const PrivacyPlan& plan, std::uint64_t steps);

/// What to ask the accountant about these phases.
privacy::Question question(const PrivacyPlan& plan, std::span<const privacy::Phase> phases);

/// What releases add up to at the plan's delta, part of which is set aside for plan.failure.
/// Looseness: see privacy::Question; a bound all the same.
privacy::Answer guarantee(const PrivacyPlan& plan, std::span<const privacy::Phase> phases,
                          double looseness = 1.0);

}  // namespace cudp
