#pragma once
#include "kernels/random/random.cuh"
#include "kernels/update/step_size.hpp"
#include "kernels/update/update.cuh"
#include "kernels/update/update_math.hpp"

namespace cudp::inline CUDP_SIMT {

// grid, block: as update_kernel's, whole warps. static smem: a double a warp of 1024 threads.
__global__ inline void noisy_norm_kernel(UpdateArgs a, UpdateNow now, NoisyNormParts out) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  if (now.step) a.noise.step = *now.step;
  const StepScalars s = now.scalars ? *now.scalars : a.scalars;
  const BlockShare share = block_share(a.begin, a.end);
  double square = 0.0;
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
        const double g = noisy_gradient<ScalarLanes>(s, a.sum[a.where ? a.where[j] : j], z[k]);
        square += g * g;
      }
    }
  }
  square = block_sum(square, &partial[0]);
  if (threadIdx.x == 0) out.parts[blockIdx.x] = square;
}

// grid: one block of one warp. smem: none.
__global__ inline void adapt_step_size_kernel(AdaptStepSize a) {
  double square = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < a.count; i += kWarp) square += a.parts[i];
  square = warp_sum(square);
  if (threadIdx.x != 0) return;
  *a.sum = grown_step_size_sum(a.settings, a.cursor->step, *a.sum, square);
  StepScalars& s = a.cursor->scalars;
  s.learning_rate = static_cast<float>(static_cast<double>(s.learning_rate) / sqrt(*a.sum));
}

}  // namespace cudp::inline CUDP_SIMT
