#pragma once
#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// The squared norm of a dense layer's gradient, x dy' and dy for the bias, from x2 = |x|^2 and dy2
/// = |dy|^2 of `outputs` numbers, both added in float32. Squares and sums below 2^-126 have few
/// bits or none: dy2 may lack that much for each number, and for each addition of a warp's or a
/// vector's lanes; x may be large enough to make much of it. So dy2 counts as if all of that had
/// been lost. The result is below what it stands for by nothing but roundings of normal numbers,
/// also where small numbers are flushed to zero. V: float, or a vector of examples.
template <class V>
CUDP_HD V dense_squared_norm(V x2, V dy2, int outputs) {
  constexpr int kLanes = 32;
  return (x2 + 1.0f) * (dy2 + static_cast<float>(outputs + kLanes) * 0x1p-126f);
}

/// The factor that a gradient of this squared norm, which is finite, is clipped by; of a layer
/// whose norm may be `bound`, or with automatic clipping of a whole example. For one example, or a
/// vector.
template <class L>
CUDP_HD typename L::F clip_factor(const ClipSettings& clip, float bound, typename L::F square) {
  if (clip.kind == Clipping::automatic)
    return L::fill(clip.max_norm) / (L::sqrt(square) + L::fill(clip.stability));
  const typename L::F one = L::fill(1.0f);
  return square > L::fill(bound * bound) ? L::fill(bound) / L::sqrt(square) : one;
}

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
    const float bound = clip.kind == Clipping::per_layer ? group_norm : clip.max_norm;
    const float square = clip.kind == Clipping::per_layer ? squared_norms[g] : total;
    factors[g] = finite ? clip_factor<ScalarLanes>(clip, bound, square) : 0.0f;
  }
  return total;
}

}  // namespace cudp
