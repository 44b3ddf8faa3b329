#pragma once
#include <algorithm>
#include <string>

namespace cudp {

/// The public bounds of a target, the number that a regression predicts. A network sees it scaled:
/// min is -1, max is 1.
struct TargetBounds {
  double min = -1.0;
  double max = 1.0;

  bool operator==(const TargetBounds&) const = default;

  /// A target as a network sees it: one beyond the bounds counts as the bound.
  float scaled(double target) const {
    return static_cast<float>(2.0 * (std::clamp(target, min, max) - min) / (max - min) - 1.0);
  }
  /// What an output of the network stands for: never beyond the bounds. NaN stays NaN.
  double value(double output) const {
    return min + 0.5 * (std::clamp(output, -1.0, 1.0) + 1.0) * (max - min);
  }
  /// A distance, e.g. huber's, as a network sees it.
  double scaled_distance(double distance) const { return 2.0 * distance / (max - min); }
};

}  // namespace cudp
