#pragma once
// Contribution of one example to the sum of a step, as plain data, and the bounds on its norm.
// bound_of() is the only function that computes the bounds. The engines' rounding grids, the
// sensitivity in the privacy plan and the certificate use bound_of(); privacy/README.md ("What an
// example adds") explains the bounds.
#include <cmath>
#include <variant>

#include "kernels/common/fixed_point.hpp"

namespace cudp {

/// Kind of clipping of an example's gradient. flat: clips the whole gradient to norm C. per_layer:
/// clips the gradient of each layer with parameters to norm C / sqrt(number of such layers).
/// automatic: multiplies the whole gradient by C / (its norm + stability), without a threshold (Bu
/// et al. 2022, AUTO-S, eq. 4.1).
enum class Clipping { flat, per_layer, automatic };

/// Settings for the clipping of an example's gradient: the kind of clipping, and its numbers.
struct ClipSettings {
  Clipping kind = Clipping::flat;
  float clip_norm = 1.0f;   ///< C, in the unit of the gradient's norm; finite and > 0
  float stability = 0.01f;  ///< gamma of AUTO-S, added to the norm in the divisor; finite and > 0
};

/// Settings of coordinate-wise adaptive clipping (AdaCliP), which keeps a running mean m and
/// variance s^2 of every coordinate of the gradient.
struct CoordinateSettings {
  float beta1 = 0.99f;          ///< decay rate of the mean m, in [0, 1]
  float beta2 = 0.9f;           ///< decay rate of the variance s^2, in [0, 1]
  float min_variance = 1e-12f;  ///< lower bound of a coordinate's variance s^2 (h1); > 0
  float max_variance = 1e-2f;   ///< upper bound of a coordinate's variance s^2 (h2); >= h1
  /// Whether s^2 estimates the variance of the released mean gradient g~, as in the AdaCliP paper.
  /// If not, it estimates the variance of the gradients of single examples.
  bool literal = false;
  bool operator==(const CoordinateSettings&) const = default;
};

/// Largest allowed norm of m / scale in coordinate-wise clipping, which transforms a gradient g to
/// (g - m) / scale, with m the mean of the gradients. If the norm would be larger, all means are
/// multiplied by a factor below 1. The limit exists because the rounding error of (g - m) / scale
/// grows with the norm.
inline constexpr double kLargestShift = 4.0;

/// Parameters of one epoch of importance sampling, in which an example is drawn with a probability
/// proportional to the norm of its gradient. All are public.
struct ImportanceRule {
  double clip = 1.0;  ///< C, clipping norm, > 0
  /// k >= 1: an example is drawn as if its gradient had k times the norm that was last computed.
  double multiple = 5.0;
  double min_norm = 0.01;  ///< g_L, in (0, C]: if the last norm is smaller, g_L is used instead
  /// b / K, in (0, 1 / C): probability to be drawn per unit of norm. b: expected batch size; K: the
  /// noisy sum of the gradient norms of all examples.
  double rate = 0.0;
  bool operator==(const ImportanceRule&) const = default;
};

/// Contribution of an example to a step's sum in DP-SGD: its gradient, clipped to the step's
/// clipping norm (StepScalars::clip_norm). An example whose gradient is not finite adds nothing.
struct ClippedGradient {
  Clipping kind = Clipping::flat;
  float stability = ClipSettings{}.stability;  ///< used by Clipping::automatic only
  bool operator==(const ClippedGradient&) const = default;

  /// Returns these clip settings together with the step's clipping norm, `clip_norm`.
  ClipSettings at(float clip_norm) const { return {kind, clip_norm, stability}; }
};

/// Contribution of an example to a step's sum with importance sampling: if the example is accepted,
/// its gradient divided by the gradient's norm, which is a vector of norm 1; otherwise nothing.
/// ImportanceRule determines the probability of acceptance.
struct AcceptedDirection {
  bool operator==(const AcceptedDirection&) const = default;
};

/// Contribution of an example to a step's sum with coordinate-wise adaptive clipping (AdaCliP): w =
/// (gradient - m) / scale, clipped to norm 1 (StepScalars::clip_norm is 1). The vectors m and scale
/// estimate each gradient coordinate's mean and spread. After the step, the noisy sum W of all w is
/// transformed back to an estimate of the mean gradient, g~ = scale * W / b + m, with b the
/// expected batch size, and g~ updates m and scale.
struct TransformedGradient {
  CoordinateSettings coordinates;
  bool operator==(const TransformedGradient&) const = default;

  /// Returns the settings for clipping the transformed gradient w to norm `clip_norm`.
  ClipSettings at(float clip_norm) const {
    return {.kind = Clipping::flat, .clip_norm = clip_norm};
  }
};

/// These two functions throw std::invalid_argument if a member of the settings is out of range.
void validate(const CoordinateSettings& settings);
void validate(const ImportanceRule& rule);

using Contribution = std::variant<ClippedGradient, AcceptedDirection, TransformedGradient>;

/// Bounds that hold for the vector that any example, whatever its data, adds to a step's sum.
struct ContributionBound {
  double norm;  ///< largest L2 norm, before rounding
  /// Power of two to whose multiples every number of the vector is rounded; it depends on `norm`
  /// only.
  double grid;
  /// Bound on the norm of m / scale, as a multiple of `norm`, for coordinate-wise clipping, which
  /// clips (gradient - m) / scale. 0 for other kinds of contribution. The rounding error of
  /// (gradient - m) / scale grows with the norm of m / scale.
  double shift;
};

/// Returns the bounds on the vector that an example adds to a step's sum. contribution: how the
/// vector is made from the example's gradient. clip_norm: clipping norm C, finite and > 0. With
/// importance sampling the vector has norm 1, whatever C is.
inline ContributionBound bound_of(const Contribution& contribution, double clip_norm) {
  const bool transformed = std::holds_alternative<TransformedGradient>(contribution);
  const double norm = std::holds_alternative<AcceptedDirection>(contribution) ? 1.0 : clip_norm;
  return {.norm = norm, .grid = sum_grid(norm), .shift = transformed ? kLargestShift : 0.0};
}

/// Returns a bound on the L2 norm, before rounding, of the part of an example's contribution that
/// belongs to the parameters of a single layer. groups: number of the model's layers with
/// parameters. contribution: how the contribution is made from the gradient. clip_norm: clipping
/// norm C.
inline double layer_norm_bound(const Contribution& contribution, double clip_norm, int groups) {
  const auto* const clipped = std::get_if<ClippedGradient>(&contribution);
  const bool per_layer = clipped != nullptr && clipped->kind == Clipping::per_layer;
  return bound_of(contribution, clip_norm).norm /
         (per_layer ? std::sqrt(static_cast<double>(groups)) : 1.0);
}

}  // namespace cudp
