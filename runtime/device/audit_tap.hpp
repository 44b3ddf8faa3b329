#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cudp {

/// What an audit puts into an engine, and what it takes from it. Nothing that is trained with one
/// is for release.
struct AuditTap {
  /// Numbers of parameters. The last examples of the training set are canaries, one for each: the
  /// gradient of such an example is kCanaryGradient along its parameter and 0 elsewhere, whatever
  /// the example is. Everything else is done to it as to any gradient: it is sampled, transformed,
  /// clipped or accepted, rounded, summed.
  std::vector<std::uint32_t> canaries = {};
  /// Is shown every step's noisy sum [d], as it is released. May be empty.
  std::function<void(std::uint64_t step, std::span<const float> sum)> released = {};
};

/// Beside this every clipping norm vanishes, and its square is finite in float32.
inline constexpr float kCanaryGradient = 0x1p40f;

}  // namespace cudp
