#pragma once
// How the threads of a fused kernel's block read rows of shared memory and share sums.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

inline constexpr int kFusedThreads = 256;

/// threadIdx.x, asked for anew: what follows from it would otherwise be worked out before the loop
/// over the examples and take registers throughout.
__device__ __forceinline__ int thread_number() {
#ifdef __CUDA_ARCH__
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
#else
  return static_cast<int>(threadIdx.x);
#endif
}

template <class Body>
__device__ __forceinline__ void for_each_of_block(int n, const Body& body) {
  for (int i = thread_number(); i < n; i += kFusedThreads) body(i);
}

template <int n>
struct alignas(4 * n) Numbers {
  float v[n];
};

template <class T, int n, std::size_t... i>
__device__ __forceinline__ void clear_each(T (&v)[n], std::index_sequence<i...>) {
  ((v[i] = 0), ...);
}
/// Zeros. Not by `= {}` or a loop: those become a memset, and v would be kept in memory.
template <class T, int n>
__device__ __forceinline__ void clear(T (&v)[n]) {
  clear_each(v, std::make_index_sequence<n>());
}

/// v = p[0 .. n - 1], where p is a multiple of `align` floats: in the widest reads that allows.
template <int align, int n>
__device__ __forceinline__ void read_row(const float* p, float (&v)[n]) {
  constexpr int kFours = align % 4 == 0 ? n / 4 : 0;
  constexpr int kTwos = align % 2 == 0 ? (n - 4 * kFours) / 2 : 0;
  CUDP_UNROLL for (int i = 0; i < kFours; ++i) {
    const int at = 4 * i;
    const auto four = *reinterpret_cast<const Numbers<4>*>(p + at);
    CUDP_UNROLL for (int k = 0; k < 4; ++k) { v[at + k] = four.v[k]; }
  }
  CUDP_UNROLL for (int i = 0; i < kTwos; ++i) {
    const int at = 4 * kFours + 2 * i;
    const auto two = *reinterpret_cast<const Numbers<2>*>(p + at);
    v[at] = two.v[0];
    v[at + 1] = two.v[1];
  }
  CUDP_UNROLL for (int i = 4 * kFours + 2 * kTwos; i < n; ++i) { v[i] = p[i]; }
}

/// Which of n numbers a lane holds after reduce_scatter.
struct Kept {
  int first, count;
};

/// Most numbers that a lane keeps of n, shared by this many lanes.
CUDP_HD constexpr int kept_of(int n, int lanes) {
  for (; lanes > 1; lanes /= 2) n = (n + 1) / 2;
  return n;
}

template <int n, int lanes>
__device__ __forceinline__ Kept kept_by(int lane) {
  Kept kept{0, n};
  int size = n;
  CUDP_UNROLL for (int offset = lanes / 2; offset > 0; offset /= 2) {
    const int half = (size + 1) / 2;
    const bool upper = (lane & offset) != 0;
    kept.first += upper ? half : 0;
    const int below = kept.count < half ? kept.count : half;
    kept.count = upper ? kept.count - below : below;
    size = half;
  }
  return kept;
}

/// Adds v's first `size` numbers over each group of `lanes` neighbouring lanes; a lane is left with
/// its share of the sums, kept_by(lane), in v's first places. All lanes of the warp must call.
template <int lanes, int size, int n>
__device__ __forceinline__ void reduce_scatter(float (&v)[n]) {
  if constexpr (lanes > 1) {
    constexpr int kHalf = (size + 1) / 2;
    const bool upper = (thread_number() & (lanes / 2)) != 0;
    CUDP_UNROLL for (int i = 0; i < kHalf; ++i) {
      const float high = kHalf + i < size ? v[kHalf + i] : 0.0f;
      const float given = upper ? v[i] : high;
      v[i] = (upper ? high : v[i]) + __shfl_xor_sync(kFullWarp, given, lanes / 2);
    }
    reduce_scatter<lanes / 2, kHalf>(v);
  }
}

}  // namespace cudp::inline CUDP_SIMT
