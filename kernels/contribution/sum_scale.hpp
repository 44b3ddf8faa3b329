#pragma once
#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// Clipping norm of a step, and the grid of its sum: the power of two to whose multiples every
/// number is rounded before it is added. Kernels read both from device memory, because they may
/// change from step to step while the same recorded CUDA graph is replayed.
struct SumScale {
  float clip_norm;     ///< finite and > 0
  float inverse_grid;  ///< 1 / grid; exact, because the grid is a power of two
  double grid;
};
inline SumScale sum_scale(float clip_norm, double grid) {
  return {.clip_norm = clip_norm, .inverse_grid = static_cast<float>(1.0 / grid), .grid = grid};
}

/// Returns the clip settings with the step's clipping norm, which is in `scale`. Callable in device
/// code.
CUDP_HD ClipSettings clip_settings(const ClippedGradient& clip, const SumScale& scale) {
  return {clip.kind, scale.clip_norm, clip.stability};
}

}  // namespace cudp
