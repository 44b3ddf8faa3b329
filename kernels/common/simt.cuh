#pragma once
// The words a kernel is written in. nvcc gives them meaning on the device; in a host-only build
// simt_emulator.hpp does, which only tests have.
//
// Kernels live in `namespace cudp::inline CUDP_SIMT` (build.hpp), so that one program can hold the
// device's kernel and the emulated one under different symbols.
#include "kernels/common/build.hpp"
#include "kernels/common/host_device.hpp"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#pragma nv_diag_suppress 20050  // "inline qualifier ignored": it still makes the host's stub weak
/// Dynamic shared memory as an array of T. One a kernel.
#define CUDP_DYNAMIC_SMEM(T, name)                           \
  extern __shared__ __align__(16) unsigned char cudp_smem[]; \
  T* name = reinterpret_cast<T*>(cudp_smem)
/// Static shared memory: CUDP_SHARED(float, tile, [16][17]);
#define CUDP_SHARED(T, name, dims) __shared__ T name dims
#else
#include "simt_emulator.hpp"  // of an include directory that only tests have
// NOLINTBEGIN(bugprone-macro-parentheses)
#define CUDP_DYNAMIC_SMEM(T, name) T* name = static_cast<T*>(simt::dynamic_shared())
#define CUDP_SHARED(T, name, dims) auto& name = simt::static_shared<T dims>([] {})
// NOLINTEND(bugprone-macro-parentheses)
#endif

namespace cudp::inline CUDP_SIMT {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

/// Four numbers in one read, from a multiple of 16 bytes.
struct alignas(16) Four {
  float v[4];
};
__device__ __forceinline__ Four load_four(const float* p) {
  return *reinterpret_cast<const Four*>(p);
}

/// Sum over the warp, returned to every lane; every lane must call it. The order is fixed.
template <class T>
__device__ __forceinline__ T warp_sum(T v) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(kFullWarp, v, offset);
  return v;
}

/// Sum over a one-dimensional block of whole warps, returned to every thread; every thread must
/// call it. The order is fixed. `partial`: shared, blockDim.x / 32 entries that no thread has used
/// since the last barrier.
template <class T>
__device__ __forceinline__ T block_sum(T v, T* partial) {
  v = warp_sum(v);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = v;
  __syncthreads();
  T total = 0;
  for (unsigned w = 0; w < blockDim.x / kWarp; ++w) total += partial[w];
  return total;
}

/// A later sum in the same `partial`: threads may still read the one before.
template <class T>
__device__ __forceinline__ T next_block_sum(T v, T* partial) {
  __syncthreads();
  return block_sum(v, partial);
}

}  // namespace cudp::inline CUDP_SIMT
