#pragma once
#include <algorithm>
#include <string>

namespace cudp {

/// Public bounds of a regression target, the number to predict. A network is trained on a scaled
/// target in [-1, 1]: min becomes -1, max becomes 1.
struct TargetBounds {
  double min = -1.0;
  double max = 1.0;

  bool operator==(const TargetBounds&) const = default;

  /// Scales a target to [-1, 1] for a network; a value outside the bounds is clamped first.
  float scaled(double target) const {
    return static_cast<float>(2.0 * (std::clamp(target, min, max) - min) / (max - min) - 1.0);
  }
  /// Converts an output of the network back to the target's scale, clamped to the bounds. NaN stays
  /// NaN.
  double value(double output) const {
    return min + 0.5 * (std::clamp(output, -1.0, 1.0) + 1.0) * (max - min);
  }
  /// Converts a difference of two targets, e.g. the threshold of the Huber loss, to the scale of
  /// the network's outputs, [-1, 1].
  double scaled_distance(double distance) const { return 2.0 * distance / (max - min); }
};

}  // namespace cudp
