#pragma once
// Contribution of one example to the sum of a step, as plain data, and the bounds on it. The bounds
// are computed in bound_of and nowhere else: the engines' grids, the plan's sensitivity, the
// certificate and privacy/README.md ("What an example adds") all use it.
#include <cmath>
#include <variant>

#include "kernels/common/fixed_point.hpp"

namespace cudp {

/// Kind of clipping. flat: clips the whole gradient to norm C. per_layer: clips each parametric
/// layer's gradient to norm C / sqrt(groups). automatic: multiplies by C / (norm + stability),
/// without a threshold (Bu et al. 2022, AUTO-S, eq. 4.1).
enum class Clipping { flat, per_layer, automatic };

struct ClipSettings {
  Clipping kind = Clipping::flat;
  float clip_norm = 1.0f;   ///< C, gradient units, finite and > 0
  float stability = 0.01f;  ///< gamma of AUTO-S; finite and > 0
};

/// Settings of coordinate-wise adaptive clipping (coordinates_math.hpp).
struct CoordinateSettings {
  float beta1 = 0.99f;          ///< decay rate of the mean m, in [0, 1]
  float beta2 = 0.9f;           ///< decay rate of the variance s^2, in [0, 1]
  float min_variance = 1e-12f;  ///< h1, lower bound of the variance estimate; > 0
  float max_variance = 1e-2f;   ///< h2, upper bound; >= h1
  bool literal = false;         ///< use the paper's variance of g~, not the per-example variance
  bool operator==(const CoordinateSettings&) const = default;
};

/// Largest |m / scale| allowed. It is limited because the rounding error of w grows with it.
inline constexpr double kLargestShift = 4.0;

/// Parameters of an epoch of importance sampling (importance.hpp). All are public.
struct ImportanceRule {
  double clip = 1.0;       ///< C, > 0
  double multiple = 5.0;   ///< k, factor from a norm to its estimate; >= 1
  double min_norm = 0.01;  ///< g_L, smallest norm that an example is drawn by, in (0, C]
  double rate = 0.0;       ///< b / K, probability to be drawn per unit of norm, in (0, 1 / C)
  bool operator==(const ImportanceRule&) const = default;
};

/// An example adds its gradient, clipped to StepScalars::clip_norm. An example whose gradient is
/// not finite adds nothing.
struct ClippedGradient {
  Clipping kind = Clipping::flat;
  float stability = ClipSettings{}.stability;  ///< used by Clipping::automatic only
  bool operator==(const ClippedGradient&) const = default;

  /// The settings at one clipping norm.
  ClipSettings at(float clip_norm) const { return {kind, clip_norm, stability}; }
};

/// An accepted candidate adds gradient / norm. The sampling rule (ImportanceRule) determines which
/// candidates are accepted.
struct AcceptedDirection {
  bool operator==(const AcceptedDirection&) const = default;
};

/// An example adds (gradient - m) / scale, clipped to StepScalars::clip_norm, which is 1. The
/// released sum is transformed back, g~ = scale sum / b + m, and updates m and s.
struct TransformedGradient {
  CoordinateSettings coordinates;
  bool operator==(const TransformedGradient&) const = default;

  /// The settings at one clipping norm.
  ClipSettings at(float clip_norm) const {
    return {.kind = Clipping::flat, .clip_norm = clip_norm};
  }
};

/// Throws std::invalid_argument if a number is out of range.
void validate(const CoordinateSettings& settings);
void validate(const ImportanceRule& rule);

using Contribution = std::variant<ClippedGradient, AcceptedDirection, TransformedGradient>;

/// Bounds that hold for the contribution of every possible example.
struct ContributionBound {
  double norm;   ///< L2 norm before rounding
  double grid;   ///< power of two that each number is rounded to a multiple of; a function of norm
  double shift;  ///< ratio of the largest value rounded before clipping to `norm`: |m / scale|
};

/// Returns the bounds of a contribution. clip_norm: C, finite and > 0. An accepted direction has
/// norm 1 whatever C is.
inline ContributionBound bound_of(const Contribution& contribution, double clip_norm) {
  const bool transformed = std::holds_alternative<TransformedGradient>(contribution);
  const double norm = std::holds_alternative<AcceptedDirection>(contribution) ? 1.0 : clip_norm;
  return {.norm = norm, .grid = sum_grid(norm), .shift = transformed ? kLargestShift : 0.0};
}

/// Bound on the norm of what an example adds to the parameters of one of `groups` layers, before
/// rounding.
inline double layer_norm_bound(const Contribution& contribution, double clip_norm, int groups) {
  const auto* const clipped = std::get_if<ClippedGradient>(&contribution);
  const bool per_layer = clipped != nullptr && clipped->kind == Clipping::per_layer;
  return bound_of(contribution, clip_norm).norm /
         (per_layer ? std::sqrt(static_cast<double>(groups)) : 1.0);
}

}  // namespace cudp
