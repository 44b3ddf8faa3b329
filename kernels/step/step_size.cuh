#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/step/step_size.hpp"

namespace cudp::inline CUDP_SIMT {

// Computes partial sums of the released gradient's squared norm; update_kernel adds them up. grid:
// any. block: whole warps up to 1024 threads. static smem: one double per warp.
__global__ inline void released_norm_kernel(ReleasedNorm a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  const bool complete = a.cursor->awaits_update != 0 && a.cursor->pending == 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    a.cursor->may_update = complete ? 1 : 0;
    if (complete) a.cursor->step_size_sum = *a.sum;
  }
  if (!complete) return;
  const float inverse_batch = a.cursor->scalars.inverse_batch;
  double square = 0.0;
  for_each_number(a.n, [&](std::int64_t j) {
    const double g = static_cast<double>(a.released[j] * inverse_batch);
    square += g * g;
  });
  square = block_sum(square, &partial[0]);
  if (threadIdx.x == 0) a.parts[blockIdx.x] = square;
}

}  // namespace cudp::inline CUDP_SIMT
