#pragma once
// Launch shape of all fused kernels, and the addition of their blocks' sums.
#include <cstdint>

#include "kernels/common/fixed_point.cuh"
#include "kernels/fused/fused.hpp"

namespace cudp::inline CUDP_SIMT {

inline LaunchShape fused_shape(const FusedSum& a, std::size_t shared_bytes,
                               unsigned threads = kFusedThreads) {
  return {
      .grid = {static_cast<unsigned>(a.blocks)}, .block = {threads}, .shared_bytes = shared_bytes};
}

// Adds up the gradient sums that the blocks of the fused kernel wrote, one slab of n fixed-point
// numbers each, to `fixed`. grid, block: any, one thread per number. smem: none.
__global__ inline void fused_reduce_kernel(FusedReduce a) {
  const int blocks = written_slabs(a.block_sums);
  for_each_number(a.n, [&](std::int64_t j) {
    long long sum = static_cast<long long>(a.fixed[j]);
    for (int b = 0; b < blocks; ++b) sum += a.block_sums.slabs[b * a.n + j];
    a.fixed[j] = static_cast<FixedPoint>(sum);
  });
}

}  // namespace cudp::inline CUDP_SIMT
