#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cudp {

/// What the attacker in an audit knows of a step: the released noisy sum, and in addition the sum
/// of all contributions except those of the canaries.
struct ReleasedSum {
  std::uint64_t step;
  std::span<const float> sum;  ///< sum of the batch's contributions plus noise, [d]
  /// Sum of the contributions of all examples that are not canaries, [d], one number per trained
  /// parameter. It is secret in practice, but the attacker in an audit may know it: the privacy
  /// bound of a Poisson-sampled batch holds even against an attacker who knows all other examples,
  /// and which of them were drawn.
  std::span<const float> ordinary;
  double max_norm;   ///< bound on the L2 norm of one example's contribution to one layer's sum
  double noise_std;  ///< standard deviation of the noise on each number
};

/// Settings of an audit, which measures the privacy loss empirically. It needs canaries (examples
/// with a chosen gradient) in the training set, and a callback that receives the released sums. A
/// model trained with canaries must not be published.
struct AuditTap {
  /// One parameter index for each canary. The last examples of the training set are the canaries,
  /// in this order. Whatever data such an example has, its gradient is kCanaryGradient at the given
  /// parameter and 0 elsewhere. Canaries are sampled like other examples. Their gradients are
  /// transformed, clipped or accepted, rounded and added like other gradients.
  std::vector<std::uint32_t> canaries = {};
  /// Function that is called with the released sum of every step. May be empty.
  std::function<void(const ReleasedSum& sum)> released = {};
};

/// The only non-zero number of a canary's gradient. It is far larger than any clipping norm, but
/// its square is still finite in float32.
inline constexpr float kCanaryGradient = 0x1p40f;

}  // namespace cudp
