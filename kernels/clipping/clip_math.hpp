#pragma once
#include <cmath>

#include "kernels/clipping/clip.hpp"
#include "kernels/common/host_device.hpp"

namespace cudp {

/// One example's clip factors from its squared norms.
/// squared_norms [groups], of each parametric layer's gradient; factors [groups], written.
/// Afterwards sum_g factors[g]^2 squared_norms[g] <= C^2 up to rounding, for every kind. If any
/// squared norm is NaN or Inf every factor is 0, and whoever sums must skip the example (0 * NaN is
/// NaN). Returns the example's whole squared norm.
CUDP_HD float clip_factors(const ClipSettings& clip, const float* squared_norms, int groups,
                           float* factors) {
  float total = 0.0f;
  for (int g = 0; g < groups; ++g) total += squared_norms[g];
  const bool finite = total < INFINITY;  // false for NaN too
  const float group_norm =
      clip.kind == Clipping::per_layer ? clip.max_norm / sqrtf(static_cast<float>(groups)) : 0.0f;
  for (int g = 0; g < groups; ++g) {
    float factor = 0.0f;
    if (finite) {
      if (clip.kind == Clipping::automatic) {
        factor = clip.max_norm / (sqrtf(total) + clip.stability);
      } else {
        const float bound = clip.kind == Clipping::per_layer ? group_norm : clip.max_norm;
        const float square = clip.kind == Clipping::per_layer ? squared_norms[g] : total;
        factor = square > bound * bound ? bound / sqrtf(square) : 1.0f;
      }
    }
    factors[g] = factor;
  }
  return total;
}

}  // namespace cudp
