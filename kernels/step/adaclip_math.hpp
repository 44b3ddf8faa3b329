#pragma once
#include "kernels/common/lanes.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// Returns one coordinate of the estimated mean gradient in coordinate-wise clipping (AdaCliP), g~
/// = scale * released / b + m. released: that coordinate of the noisy sum of (g - m) / scale over
/// the batch, with g an example's gradient. b: expected batch size. m, scale: the coordinate's mean
/// and scale. L: the type of lanes, ScalarLanes or VecLanes. s: scalars of the step, which include
/// 1 / b.
template <class L>
CUDP_HD typename L::F restored_gradient(const StepScalars& s, typename L::F released,
                                        typename L::F scale, typename L::F mean) {
  return L::fma(scale * L::fill(s.inverse_batch), released, mean);
}

/// Updates the mean m and the variance s^2 of one gradient coordinate (AdaCliP) after a step has
/// released the noisy mean gradient g in that coordinate:
///   m <- beta1 m + (1 - beta1) g,  s^2 <- beta2 s^2 + (1 - beta2) v,
///   v = clamp((g - m)^2 - (scale noise_std / b)^2, h1, h2), the variance of g that is not noise.
/// b is the expected batch size; h1 and h2 are c.min_variance and c.max_variance. Unless c.literal,
/// v is multiplied by b before the clamp, because g is a mean of about b gradients. deviation: s,
/// the square root of the variance. L: the type of lanes, ScalarLanes or VecLanes. s: scalars of
/// the step.
template <class L>
CUDP_HD void update_moments(const CoordinateSettings& c, const StepScalars& s, typename L::F g,
                            typename L::F scale, typename L::F& mean, typename L::F& deviation) {
  using F = typename L::F;
  mean = L::fma(L::fill(1.0f - c.beta1), g, L::fill(c.beta1) * mean);
  const F away = g - mean;
  const F noise = scale * L::fill(s.noise_std * s.inverse_batch);
  F v = L::fma(away, away, -(noise * noise));
  if (!c.literal) v = v / L::fill(s.inverse_batch);
  v = v > L::fill(c.min_variance) ? v : L::fill(c.min_variance);  // NaN becomes min_variance too
  v = v < L::fill(c.max_variance) ? v : L::fill(c.max_variance);
  deviation =
      L::sqrt(L::fma(L::fill(1.0f - c.beta2), v, L::fill(c.beta2) * (deviation * deviation)));
}

}  // namespace cudp
