#pragma once
#include "kernels/random/random.cuh"
#include "kernels/step/step_size.hpp"
#include "kernels/step/update.cuh"
#include "kernels/step/update_math.hpp"

namespace cudp::inline CUDP_SIMT {

// grid, block: any, whole warps. static smem: a double a warp of 1024 threads.
__global__ inline void released_norm_kernel(ReleasedNorm a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  double square = 0.0;
  for_each_number(a.n, [&](std::int64_t j) {
    const double g = static_cast<double>(a.released[j] * a.scalars->inverse_batch);
    square += g * g;
  });
  square = block_sum(square, &partial[0]);
  if (threadIdx.x == 0) a.parts[blockIdx.x] = square;
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
