#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cudp {

/// Released noisy sum of a step, and the other values that the audit's assumed attacker knows.
struct ReleasedSum {
  std::uint64_t step;
  std::span<const float> sum;  ///< [d], sum of the batch's contributions plus noise
  /// Contribution of the examples that are not canaries, [d]. It is not public. But batches are
  /// Poisson samples, so the privacy bound holds even against an attacker who knows all other
  /// examples and which of them were drawn.
  std::span<const float> ordinary;
  double max_norm;   ///< bound on the L2 norm of one example's contribution to one layer's sum
  double noise_std;  ///< standard deviation of the noise on each number
};

/// Settings of an audit: canaries (examples with a chosen gradient) in the training set, and a
/// callback that receives the released sums. A model trained with canaries must not be released.
struct AuditTap {
  /// Indices of parameters, one for each canary. The last examples of the training set are the
  /// canaries. The gradient of a canary is kCanaryGradient along its parameter and 0 elsewhere,
  /// whatever the example is. Otherwise it is treated like any gradient: sampled, transformed,
  /// clipped or accepted, rounded, summed.
  std::vector<std::uint32_t> canaries = {};
  /// Called with the sum of every step. May be empty.
  std::function<void(const ReleasedSum& sum)> released = {};
};

/// The one non-zero number of a canary's gradient: far larger than any clipping norm, but its
/// square is finite in float32.
inline constexpr float kCanaryGradient = 0x1p40f;

}  // namespace cudp
