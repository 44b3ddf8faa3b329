#pragma once
// The CUDA features that kernels use: types, barriers, shuffles, shared memory. nvcc defines most
// of them on the device. In a host-only build the tests' simt_emulator.hpp defines them.
//
// Kernels live in `namespace cudp::inline CUDP_SIMT` (build.hpp), so that one program can contain
// the device's kernel and the emulated one under different symbols.
#include "kernels/common/build.hpp"
#include "kernels/common/host_device.hpp"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#pragma nv_diag_suppress 20050  // "inline qualifier ignored": it still makes the host's stub weak
/// Declares the dynamic shared memory of a kernel as an array of T. Use it at most once in a
/// kernel.
#define CUDP_DYNAMIC_SMEM(T, name)                           \
  extern __shared__ __align__(16) unsigned char cudp_smem[]; \
  T* name = reinterpret_cast<T*>(cudp_smem)
/// Declares an array in static shared memory. Example: CUDP_SHARED(float, tile, [16][17]);
#define CUDP_SHARED(T, name, dims) __shared__ T name dims
#else
#include "simt_emulator.hpp"  // found only in an include directory of the tests
// NOLINTBEGIN(bugprone-macro-parentheses)
#define CUDP_DYNAMIC_SMEM(T, name) T* name = static_cast<T*>(simt::dynamic_shared())
#define CUDP_SHARED(T, name, dims) auto& name = simt::static_shared<T dims>([] {})
// NOLINTEND(bugprone-macro-parentheses)
#endif

namespace cudp::inline CUDP_SIMT {

/// Number of threads of a warp.
inline constexpr int kWarp = 32;
/// Mask of all threads of a warp, for warp functions such as shuffles.
inline constexpr unsigned kFullWarp = 0xffffffffu;

/// Four floats that are read at once. The address must be a multiple of 16 bytes.
struct alignas(16) Four {
  float v[4];
};
__device__ __forceinline__ Four load_four(const float* p) {
  return *reinterpret_cast<const Four*>(p);
}

/// Returns the sum of v over the warp, to every lane. Every lane must call it. The order of
/// additions is fixed.
template <class T>
__device__ __forceinline__ T warp_sum(T v) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(kFullWarp, v, offset);
  return v;
}

/// Returns the sum of v over a one-dimensional block of whole warps, to every thread. Every thread
/// must call it. The order of additions is fixed. `partial`: shared memory, blockDim.x / 32 entries
/// that no thread has used since the last barrier.
template <class T>
__device__ __forceinline__ T block_sum(T v, T* partial) {
  v = warp_sum(v);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = v;
  __syncthreads();
  T total = 0;
  for (unsigned w = 0; w < blockDim.x / kWarp; ++w) total += partial[w];
  return total;
}

/// Returns the sum of v over a one-dimensional block of whole warps, to every thread. Every thread
/// must call it. In contrast to block_sum(), `partial` may be the memory of an earlier sum: the
/// function first synchronises the block, because threads may still be reading that memory.
template <class T>
__device__ __forceinline__ T next_block_sum(T v, T* partial) {
  __syncthreads();
  return block_sum(v, partial);
}

}  // namespace cudp::inline CUDP_SIMT
