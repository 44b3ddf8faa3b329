#pragma once
// Noise and one optimizer step (update.hpp). The noise lives in registers only.
#include <cstdint>

#include "kernels/random/random.cuh"
#include "kernels/update/coordinates_math.hpp"
#include "kernels/update/update.hpp"
#include "kernels/update/update_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// This step's numbers in device memory, so that a captured graph can be replayed with others.
struct UpdateNow {
  const std::uint64_t* step;   ///< [1], read in place of args.noise.step; null: that one
  const StepScalars* scalars;  ///< [1], read in place of args.scalars; null: those
};

// grid, block: any, one-dimensional; a thread a generator block, so (end - begin) / 16 threads are
// enough. kind is a.optimizer.kind.
template <OptimizerKind kind>
__global__ void update_kernel(UpdateArgs a, UpdateNow now) {
  constexpr bool has_moment1 = kind != OptimizerKind::sgd;
  constexpr bool has_moment2 = kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
  if (now.step) a.noise.step = *now.step;
  const StepScalars s = now.scalars ? *now.scalars : a.scalars;
  const BlockShare share = block_share(a.begin, a.end);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16] = {};
    if (s.noise_std != 0.0f)
      random_block<ScalarLanes>(a.noise, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (int row = 0; row < 16; row += 2) {
      float z[2] = {0.0f, 0.0f};
      if (s.noise_std != 0.0f) box_muller<ScalarLanes>(word[row], word[row + 1], z[0], z[1]);
      CUDP_UNROLL for (int k = 0; k < 2; ++k) {
        const std::int64_t j = number_at(block, row + k);
        if (j >= a.end) continue;
        const float sum = a.sum[a.where ? a.where[j] : j];
        float g = 0.0f;
        float mean = 0.0f;
        float deviation = 0.0f;
        float scale = 0.0f;
        if (a.coordinates.on) {
          mean = a.scale->shrink * a.mean[j];
          deviation = a.deviation[j];
          scale = ScalarLanes::sqrt(deviation) * a.scale->root;
          g = restored_gradient<ScalarLanes>(s, sum, z[k], scale, mean);
          update_moments<ScalarLanes>(a.coordinates, s, g, scale, mean, deviation);
          a.mean[j] = mean;
          a.deviation[j] = deviation;
        } else {
          g = noisy_gradient<ScalarLanes>(s, sum, z[k]);
        }
        float theta = a.parameters[j];
        float m = 0.0f;
        float v = 0.0f;
        if constexpr (has_moment1) m = a.moment1[j];
        if constexpr (has_moment2) v = a.moment2[j];
        optimizer_step<kind, ScalarLanes>(a.optimizer, s, g, theta, m, v);
        a.parameters[j] = theta;
        if constexpr (has_moment1) a.moment1[j] = m;
        if constexpr (has_moment2) a.moment2[j] = v;
        if (a.average) a.average[j] = moving_average<ScalarLanes>(s, a.average[j], theta);
      }
    }
  }
}

using UpdateKernel = void (*)(UpdateArgs, UpdateNow);

/// The kernel of an optimizer, for a launch.
inline UpdateKernel update_kernel_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return update_kernel<OptimizerKind::sgd>;
    case OptimizerKind::momentum:
      return update_kernel<OptimizerKind::momentum>;
    case OptimizerKind::nesterov:
      return update_kernel<OptimizerKind::nesterov>;
    case OptimizerKind::adam:
      return update_kernel<OptimizerKind::adam>;
    case OptimizerKind::adamw:
      break;
  }
  return update_kernel<OptimizerKind::adamw>;
}

}  // namespace cudp::inline CUDP_SIMT
