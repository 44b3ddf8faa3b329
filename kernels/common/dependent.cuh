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

/// Allows the next launch in the stream, if it is a dependent launch, to start its blocks as soon
/// as every block of this launch (its primary) has called this function or has ended. Without the
/// call they start when this launch ends. The call does not make results visible: for those the
/// dependent kernel calls wait_for_primary(), which waits for the end of this launch.
__device__ __forceinline__ void let_dependent_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the primary, the launch before this dependent launch in the stream, is complete and
/// its results are visible. Returns at once in an ordinary launch, or if the thread has waited
/// already.
__device__ __forceinline__ void wait_for_primary() {
#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#else
  simt::wait_for_primary(__builtin_FILE(), __builtin_LINE());
#endif
}

/// Reads a number from global memory without the multiprocessor's own cache. That cache may have a
/// value that is older than what the primary (the launch before this dependent launch) wrote.
template <class T>
__device__ __forceinline__ T read_uncached(const T* p) {
  return *static_cast<const volatile T*>(p);
}

}  // namespace cudp::inline CUDP_SIMT
