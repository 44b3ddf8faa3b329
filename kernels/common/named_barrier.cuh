#pragma once
// Barrier for some of a block's warps.
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Waits until `threads` threads of the block have called this function with the same id, 1 to 15.
/// (Id 0 is the barrier of __syncthreads().) Whole warps must call it. Writes to memory by these
/// threads before the call are visible to all of them after it.
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
