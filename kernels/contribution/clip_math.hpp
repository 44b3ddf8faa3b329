#pragma once
#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// Returns the squared norm of a dense layer's gradient for one example, (|x|^2 + 1) |dy|^2: that
/// of the outer product x dy' for the weights, and of dy for the bias. x2 = |x|^2 of the layer's
/// input; dy2 = |dy|^2 of the gradient of the layer's `outputs` outputs. Both are summed in
/// float32.
///
/// In float32, squares and sums below 2^-126 lose bits or become 0. Each square, and each addition
/// across the lanes of a warp or a SIMD vector, may make dy2 too small by up to 2^-126, and the
/// product with a large |x|^2 magnifies this loss. The function therefore adds the largest possible
/// loss to dy2. The result is then too small only by the usual relative rounding errors, even on
/// hardware that flushes small numbers to zero. V is float, or a SIMD vector with one example per
/// lane.
template <class V>
CUDP_HD V dense_squared_norm(V x2, V dy2, int outputs) {
  constexpr int kLanes = 32;
  return (x2 + 1.0f) * (dy2 + static_cast<float>(outputs + kLanes) * 0x1p-126f);
}

/// Returns the factor that a gradient is multiplied by to clip it. Requires a finite squared norm.
/// With flat and per-layer clipping, `square` is the squared norm of the gradient (per layer: of
/// that layer's gradient) and `bound` the norm to clip to. With automatic clipping, `square` is the
/// squared norm of the example's whole gradient, and `bound` is not used. L: ScalarLanes for one
/// example, or VecLanes for one example per SIMD lane.
template <class L>
CUDP_HD typename L::F clip_factor(const ClipSettings& clip, float bound, typename L::F square) {
  if (clip.kind == Clipping::automatic)
    return L::fill(clip.clip_norm) / (L::sqrt(square) + L::fill(clip.stability));
  const typename L::F one = L::fill(1.0f);
  return square > L::fill(bound * bound) ? L::fill(bound) / L::sqrt(square) : one;
}

/// Computes one example's clip factors from squared_norms [groups], the squared norm of each
/// parametric layer's gradient (a group is one such layer). Writes factors [groups]. They satisfy
/// sum_g factors[g]^2 squared_norms[g] <= C^2 up to rounding, for every kind of clipping, with C
/// the clipping norm. If any squared norm is NaN or infinite, every factor is 0, and the caller
/// must leave the example out of the sum, because 0 NaN is NaN. Returns the squared norm of the
/// example's whole gradient. size: length of both arrays, a compile-time constant so that a device
/// keeps them in registers; squared_norms must be 0 from index `groups` on.
CUDP_HD float clip_factors(const ClipSettings& clip, const float* squared_norms, int groups,
                           float* factors, int size) {
  float total = 0.0f;
  for (int g = 0; g < size; ++g) total += squared_norms[g];
  const bool finite = total < INFINITY;  // false for NaN too
  const float group_norm =
      clip.kind == Clipping::per_layer ? clip.clip_norm / sqrtf(static_cast<float>(groups)) : 0.0f;
  for (int g = 0; g < size; ++g) {
    const float bound = clip.kind == Clipping::per_layer ? group_norm : clip.clip_norm;
    const float square = clip.kind == Clipping::per_layer ? squared_norms[g] : total;
    factors[g] = finite ? clip_factor<ScalarLanes>(clip, bound, square) : 0.0f;
  }
  return total;
}
CUDP_HD float clip_factors(const ClipSettings& clip, const float* squared_norms, int groups,
                           float* factors) {
  return clip_factors(clip, squared_norms, groups, factors, groups);
}

}  // namespace cudp
