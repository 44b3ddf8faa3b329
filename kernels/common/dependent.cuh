#pragma once
// Dependent launches (CUDA's programmatic dependent launch, devices of compute capability 9.0 and
// newer): a kernel may run its first part beside the launch before it in the stream, its primary.
//
// Contract of a kernel that is launched so (Gpu::launch_dependent()):
//   - Every thread calls wait_for_primary() before it ends. The launch then ends after its primary,
//     and an ordinary launch that follows begins after both.
//   - Before the call a thread writes nothing to global memory, and reads nothing there that the
//     primary writes.
//   - What it reads before the call may be out of date: CUDA makes memory visible at the beginning
//     of an ordinary launch and at the wait. After the call the thread reads it again
//     (read_uncached()), and uses nothing that it has computed from another value.
//   - The primary is an ordinary launch. So everything before the primary is complete when the
//     first thread of the dependent launch starts.
//
// In code for older devices both functions do nothing, and launch_dependent() is an ordinary
// launch. The emulator of the tests runs the part before the wait before the primary, and reports a
// thread that ends without the wait.
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Allows the blocks of a dependent launch to start when all blocks of this launch, its primary,
/// have called this or have ended. It publishes no results: wait_for_primary() waits for the end of
/// the primary, wherever the primary calls this. Without the call they start when the primary ends.
__device__ __forceinline__ void let_dependent_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the primary is complete and its results are visible. Returns at once in an ordinary
/// launch, or if the thread has waited already.
__device__ __forceinline__ void wait_for_primary() {
#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#else
  simt::wait_for_primary(__builtin_FILE(), __builtin_LINE());
#endif
}

/// Reads a number in global memory past the multiprocessor's own cache, which may have a value from
/// before the primary.
template <class T>
__device__ __forceinline__ T read_uncached(const T* p) {
  return *static_cast<const volatile T*>(p);
}

}  // namespace cudp::inline CUDP_SIMT
