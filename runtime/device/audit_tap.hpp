#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cudp {

/// The noisy sum of a step, as it is released, and what an attacker may know of it.
struct ReleasedSum {
  std::uint64_t step;
  std::span<const float> sum;  ///< [d]
  /// [d], what examples that are no canaries added to it. Not public; but batches are Poisson
  /// samples, so a guarantee holds against whoever knows all other examples and which of them were
  /// drawn.
  std::span<const float> ordinary;
  double max_norm;   ///< the norm of what clipping leaves of an example in one layer
  double noise_std;  ///< of every number
};

/// The canaries that an audit puts into an engine, and the sums that it takes from it. Nothing that
/// is trained with one is for release.
struct AuditTap {
  /// Numbers of parameters. The last examples of the training set are canaries, one for each: the
  /// gradient of such an example is kCanaryGradient along its parameter and 0 elsewhere, whatever
  /// the example is. Everything else is done to it as to any gradient: it is sampled, transformed,
  /// clipped or accepted, rounded, summed.
  std::vector<std::uint32_t> canaries = {};
  /// Is shown the sum of every step. May be empty.
  std::function<void(const ReleasedSum& sum)> released = {};
};

/// Beside this every clipping norm vanishes, and its square is finite in float32.
inline constexpr float kCanaryGradient = 0x1p40f;

}  // namespace cudp
