#pragma once
// The contribution of one example to the sum of a step, as plain data; and its bounds, worked out
// here and nowhere else: the engines' grids, the plan's sensitivity, the certificate and
// privacy/README.md ("What an example adds") all go back to bound_of.
#include <cmath>
#include <variant>

#include "kernels/common/fixed_point.hpp"

namespace cudp {

/// flat: one bound C on the whole gradient. per_layer: C / sqrt(groups) on each parametric layer.
/// automatic: C / (norm + stability), no threshold (Bu et al. 2022, AUTO-S, eq. 4.1).
enum class Clipping { flat, per_layer, automatic };

struct ClipSettings {
  Clipping kind = Clipping::flat;
  float max_norm = 1.0f;    ///< C, gradient units, finite and > 0
  float stability = 0.01f;  ///< gamma of AUTO-S; finite and > 0
};

/// Coordinate-wise adaptive clipping (coordinates_math.hpp).
struct CoordinateSettings {
  float beta1 = 0.99f;          ///< memory of m, in [0, 1]
  float beta2 = 0.9f;           ///< memory of s^2, in [0, 1]
  float min_variance = 1e-12f;  ///< h1, bounds of the variance estimate; > 0
  float max_variance = 1e-2f;   ///< h2, >= h1
  bool literal = false;         ///< the paper's variance of g~ in place of the per-example variance
  bool operator==(const CoordinateSettings&) const = default;
};

/// |m / scale| is held to this: the rounding of w grows with it.
inline constexpr double kLargestShift = 4.0;

/// The numbers of an epoch of importance sampling (importance.hpp), all public.
struct ImportanceRule {
  double clip = 1.0;       ///< C, > 0
  double multiple = 5.0;   ///< k, >= 1
  double min_norm = 0.01;  ///< g_L, in (0, C]
  double rate = 0.0;       ///< b / K, in (0, 1 / C)
  bool operator==(const ImportanceRule&) const = default;
};

/// An example adds its gradient, clipped to StepScalars::clip_norm. One that is not finite adds
/// nothing.
struct ClippedGradient {
  Clipping kind = Clipping::flat;
  float stability = ClipSettings{}.stability;  ///< of Clipping::automatic
  bool operator==(const ClippedGradient&) const = default;

  /// The settings at one clipping norm.
  ClipSettings at(float max_norm) const { return {kind, max_norm, stability}; }
};

/// A candidate that is accepted adds gradient / norm; the rule that drew it says who is accepted.
struct AcceptedDirection {
  bool operator==(const AcceptedDirection&) const = default;
};

/// An example adds (gradient - m) / scale, clipped to StepScalars::clip_norm, which is 1. The
/// released sum is brought back, g~ = scale sum / b + m, and moves m and s.
struct TransformedGradient {
  CoordinateSettings coordinates;
  bool operator==(const TransformedGradient&) const = default;

  /// The settings at one clipping norm.
  ClipSettings at(float max_norm) const { return {.kind = Clipping::flat, .max_norm = max_norm}; }
};

/// Throw std::invalid_argument where a number is out of range.
void validate(const CoordinateSettings& settings);
void validate(const ImportanceRule& rule);

using Contribution = std::variant<ClippedGradient, AcceptedDirection, TransformedGradient>;

/// The bounds that hold for every contribution, whatever the example is.
struct ContributionBound {
  double norm;   ///< in L2, before rounding
  double grid;   ///< each number is rounded to a multiple of this power of two: a function of norm
  double shift;  ///< what is rounded first is larger than norm by so many times: |m / scale|
};

/// clip_norm: C, finite and > 0. The direction of an accepted gradient has norm 1 whatever C is.
inline ContributionBound bound_of(const Contribution& contribution, double clip_norm) {
  const bool transformed = std::holds_alternative<TransformedGradient>(contribution);
  const double norm = std::holds_alternative<AcceptedDirection>(contribution) ? 1.0 : clip_norm;
  return {.norm = norm, .grid = sum_grid(norm), .shift = transformed ? kLargestShift : 0.0};
}

/// The norm of what an example adds to the parameters of one of `groups` layers, before rounding.
inline double layer_norm_bound(const Contribution& contribution, double clip_norm, int groups) {
  const auto* const clipped = std::get_if<ClippedGradient>(&contribution);
  const bool per_layer = clipped != nullptr && clipped->kind == Clipping::per_layer;
  return bound_of(contribution, clip_norm).norm /
         (per_layer ? std::sqrt(static_cast<double>(groups)) : 1.0);
}

}  // namespace cudp
