#pragma once
// Asynchronous copies from global to shared memory (from Ampere on), which need no registers for
// the data that are being copied.
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Starts to copy four floats from global to shared memory; both addresses must be multiples of 16
/// bytes. If `inside` is false, writes zeros and does not read `from`. The calling thread may read
/// the four floats after it has called wait_for_copies(); other threads may read them after a
/// barrier that follows that call.
__device__ __forceinline__ void copy_four_async(float* shared, const float* from, bool inside) {
#ifdef __CUDACC__
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
#else
  simt::copy_async(shared, from, inside, __builtin_FILE(), __builtin_LINE());
#endif
}

/// Waits until all copies that this thread has started with copy_four_async() are complete.
__device__ __forceinline__ void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  simt::wait_for_copies();
#endif
}

}  // namespace cudp::inline CUDP_SIMT
