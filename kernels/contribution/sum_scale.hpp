#pragma once
#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// The clipping norm of a step and the grid of its sum. Kernels find them in device memory: they
/// may change from step to step, and a recorded step is replayed with others.
struct SumScale {
  float max_norm;      ///< finite and > 0
  float inverse_grid;  ///< exact: the grid is a power of two
  double grid;
};
inline SumScale sum_scale(float max_norm, double grid) {
  return {.max_norm = max_norm, .inverse_grid = static_cast<float>(1.0 / grid), .grid = grid};
}

/// As ClippedGradient::at, for kernels.
CUDP_HD ClipSettings clip_settings(const ClippedGradient& clip, const SumScale& scale) {
  return {clip.kind, scale.max_norm, clip.stability};
}

}  // namespace cudp
