#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/contribution/norm_total.hpp"

namespace cudp::inline CUDP_SIMT {

// Adds the sum of the norms to *total, which the caller must set to 0 before. grid: any. block:
// whole warps up to 1024 threads. static smem: one word per warp.
__global__ inline void norm_total_kernel(NormTotal a) {
  CUDP_SHARED(unsigned long long, partial, [1024 / kWarp]);
  unsigned long long sum = 0;
  for_each_number(a.n, [&](std::int64_t i) { sum += norm_units(a.norms[i], a.max_norm, a.grid); });
  sum = block_sum(sum, &partial[0]);
  if (threadIdx.x == 0) atomicAdd(a.total, sum);
}

}  // namespace cudp::inline CUDP_SIMT
