#pragma once
// Copies from global to shared memory that a thread does not wait for (from Ampere on): no register
// holds what is on its way.
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Four numbers to shared memory, both places multiples of 16 bytes; zeros where not `inside`
/// (`from` is then not read). They are there for the thread that copied after wait_for_copies(),
/// for the others after a barrier behind that.
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

/// Until all that this thread copied has arrived.
__device__ __forceinline__ void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  simt::wait_for_copies();
#endif
}

}  // namespace cudp::inline CUDP_SIMT
