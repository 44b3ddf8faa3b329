#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/step/tally.hpp"

namespace cudp::inline CUDP_SIMT {

/// Adds up a batch's losses, gradient norms and counts of clipped and non-finite gradients. Called
/// by one block of whole warps. partial: shared memory, one double per warp.
__device__ __forceinline__ void tally_batch(const TallyBatch& a, double* partial) {
  const int live = live_examples(a.batch);
  double loss = 0.0;  // all three sums are of whole numbers, and exact in double
  double norm = 0.0;
  double clipped = 0.0;
  double non_finite = 0.0;
  for (int e = static_cast<int>(threadIdx.x); e < live; e += static_cast<int>(blockDim.x)) {
    if (a.squared_norms != nullptr) {
      const std::int64_t row = static_cast<std::int64_t>(e) * a.groups;
      float square = 0.0f;
      bool is_clipped = false;
      for (int g = 0; g < a.groups; ++g) {
        square += a.squared_norms[row + g];
        is_clipped = is_clipped || a.factors[row + g] < 1.0f;
      }
      if (!(square < INFINITY)) {
        non_finite += 1.0;
        continue;
      }
      norm += static_cast<double>(tally_units(sqrt(static_cast<double>(square))));
      clipped += is_clipped ? 1.0 : 0.0;
    }
    loss += static_cast<double>(tally_units(static_cast<double>(a.loss[e])));
  }
  loss = block_sum(loss, partial);
  norm = next_block_sum(norm, partial);
  clipped = next_block_sum(clipped, partial);
  non_finite = next_block_sum(non_finite, partial);
  if (threadIdx.x != 0) return;
  a.total->loss += static_cast<long long>(loss);
  a.total->norm += static_cast<long long>(norm);
  a.total->examples += static_cast<unsigned long long>(live);
  a.total->clipped += static_cast<unsigned long long>(clipped);
  a.total->non_finite += static_cast<unsigned long long>(non_finite);
}

// Adds up a micro-batch. grid: 1 block. block: whole warps, at most 1024. static smem: 32 doubles.
__global__ inline void tally_kernel(TallyBatch a) {
  CUDP_SHARED(double, partial, [32]);
  tally_batch(a, &partial[0]);
}

}  // namespace cudp::inline CUDP_SIMT
