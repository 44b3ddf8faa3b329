#pragma once
// Dependent launches (CUDA's programmatic dependent launch, devices of compute capability 9.0 and
// newer). The primary of a dependent launch is the launch before it in the stream. A dependent
// launch may run its first part while its primary is still running.
//
// Contract of a kernel that is launched by Gpu::launch_dependent():
//   - Every thread calls wait_for_primary() before it ends. The launch then ends after its primary,
//     and an ordinary launch that follows begins after both.
//   - Before wait_for_primary() a thread writes nothing to global memory, and reads nothing there
//     that the primary writes.
//   - Values that a thread reads from global memory before wait_for_primary() may be out of date:
//     CUDA makes memory visible at the beginning of an ordinary launch and in wait_for_primary().
//     After wait_for_primary() the thread reads them again (read_uncached()). If a value has
//     changed, the thread discards all results that it computed from the old one.
//   - The primary is an ordinary launch. So all launches before the primary are complete when the
//     first thread of the dependent launch starts.
//
// For devices older than 9.0 let_dependent_start() and wait_for_primary() do nothing, and
// launch_dependent() makes an ordinary launch. The emulator of the tests runs the part of a kernel
// before wait_for_primary() before it runs the primary. It reports a thread that ends without
// calling wait_for_primary().
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Allows the next launch in the stream, if it is a dependent launch, to start its blocks as soon
/// as every block of this launch (its primary) has called this function or has ended. Without this
/// call the dependent launch starts when this launch ends. The call does not make the results of
/// this launch visible: before the dependent kernel reads them, it must call wait_for_primary(),
/// which waits for the end of this launch.
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
