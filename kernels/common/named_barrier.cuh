#pragma once
// Barrier for some of a block's warps.
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Waits until `threads` threads of the block have called it with the same id, 1 to 15; id 0 is
/// __syncthreads(). Whole warps call it. It orders memory accesses of these threads, like
/// __syncthreads().
template <int threads>
__device__ __forceinline__ void named_barrier(int id) {
  static_assert(threads > 0 && threads % kWarp == 0);
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
#else
  simt::named_barrier(id, threads, __builtin_FILE(), __builtin_LINE());
#endif
}

}  // namespace cudp::inline CUDP_SIMT
