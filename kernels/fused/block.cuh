#pragma once
// Code that all phases of the fused kernel (fused_kernel.cuh) share: the layout of a block's shared
// memory, and access to it.
#include <cstdint>
#include <utility>

#include "kernels/common/half_core.cuh"
#include "kernels/fused/candidates.cuh"
#include "kernels/fused/packed.hpp"
#include "kernels/layers/any_function.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

template <class T, int n, std::size_t... i>
__device__ __forceinline__ void clear_each(T (&v)[n], std::index_sequence<i...>) {
  ((v[i] = 0), ...);
}
/// Sets all n elements of v to 0. `= {}` or a loop would become a memset, and v would be kept in
/// memory, not in registers.
template <class T, int n>
__device__ __forceinline__ void clear(T (&v)[n]) {
  clear_each(v, std::make_index_sequence<n>());
}

static_assert(unsigned{kThreads} == kFusedThreads);

/// Shared memory of a block of the fused kernel: the packed weights (image), arrays of the E
/// examples that it processes at once (planes), and the factors with which their gradients are
/// added. P: the kernel's Plan for one network.
template <class P>
struct Space {
  static constexpr int E = P::kExamples;
  alignas(kChunk) unsigned char image[Packed<P>::kBytes];
  alignas(kChunk) unsigned char planes[P::layout().bytes];
  float scale[E][P::kLayers];  ///< factor of each layer's gradient when it is added to the sum
  int adds[E];                 ///< 1 if the example's gradient is added, else 0
  alignas(16) PrefetchedCandidates candidates;
  // Activations. In shared memory, because the sums need all registers.
  AnyFunction functions[P::kStages.functions];
};
template <class P>
constexpr std::size_t shared_bytes() {
  return sizeof(Space<P>);
}

/// Returns the index of the thread's warp. The compiler knows that it is equal in all lanes.
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(kFullWarp, thread_number() / kWarp, 0);
}

/// A lane's part of the operands of a tensor-core product. For ldmatrix the lane passes the address
/// of row `row` of matrix `matrix`. Of a 16 x 8 tile of sums the lane has rows g and g + 8, columns
/// 2 t and 2 t + 1.
struct Lane {
  int lane, g, t, matrix, row;
  __device__ __forceinline__ Lane()
      : lane(thread_number() % kWarp), g(lane / 4), t(lane % 4), matrix(lane / 8), row(lane % 8) {}
};

/// Calls body(std::integral_constant<int, i>) for i = 0 .. n - 1.
template <int n, class Body>
__device__ __forceinline__ void for_constants(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, n>());
}

/// Returns the address of example e's part of the array p in shared memory. e: number of the
/// example in the group. P: the kernel's Plan for one network. s: the block's shared memory.
template <class T, class P>
__device__ __forceinline__ T* plane_of(Space<P>& s, const Plane& p, int e) {
  return reinterpret_cast<T*>(s.planes + p.at + e * p.stride);
}
/// Returns the index table at offset `at` [16-bit numbers] among the tables of the packed copy of
/// the parameters, Space::image. P: the kernel's Plan for one network.
template <class P>
__device__ __forceinline__ const std::uint16_t* table_of(const Space<P>& s, int at) {
  return reinterpret_cast<const std::uint16_t*>(s.image + Packed<P>::kTables) + at;
}
template <class P>
__device__ __forceinline__ const float* floats_of(const Space<P>& s, int byte) {
  return reinterpret_cast<const float*>(s.image + byte);
}

/// A chunk: 16 bytes of shared memory, the unit in which arrays are laid out there.
struct alignas(kChunk) Chunk {
  u32 word[4];
};
/// Two floats that are loaded and stored together (8-byte aligned): consecutive numbers, e.g. the
/// values of two neighbouring channels.
struct alignas(8) Two {
  float x, y;
};
__device__ __forceinline__ Two& two_at(float* p) { return *reinterpret_cast<Two*>(p); }
__device__ __forceinline__ Two two_of(const float* p) { return *reinterpret_cast<const Two*>(p); }

/// Returns two consecutive numbers that are stored as fp16 (`high`) or as sums of two fp16 numbers
/// (`high` + `low`). word: index of the 32-bit word that has both numbers. has_low: whether the
/// numbers are sums of two.
template <bool has_low>
__device__ __forceinline__ Two numbers_at(const u32* high, const u32* low, int word) {
  Two v{low_half(high[word]), high_half(high[word])};
  if constexpr (has_low) {
    v.x += low_half(low[word]);
    v.y += high_half(low[word]);
  }
  return v;
}
template <bool has_low>
__device__ __forceinline__ void put_numbers(u32* high, u32* low, int word, Two v) {
  if constexpr (has_low) {
    const SplitHalves parts = split_halves(v.x, v.y);
    high[word] = parts.high;
    low[word] = parts.low;
  } else {
    high[word] = halves(v.x, v.y);
  }
}

/// Computes d += a b for a half of a matrix b of 16 columns in registers, as ldmatrix_x4() loads
/// it: columns 0 to 7 for half 0, 8 to 15 for half 1.
__device__ __forceinline__ void multiply_add_half(float (&d)[4], const u32 (&a)[4],
                                                  const u32 (&b)[4], int half) {
  const u32 columns[2] = {b[2 * half], b[2 * half + 1]};
  multiply_add(d, a, columns);
}

/// Group of examples that a block processes at once: the examples with the indices first, first +
/// apart, first + 2 apart, ... of the micro-batch.
struct Group {
  int first, apart, live;  ///< live: number of examples of the micro-batch

  /// Returns the index in the micro-batch of example e of the group.
  __device__ __forceinline__ int at(int e) const { return first + e * apart; }
  /// Returns whether the micro-batch has an example with the index at(e).
  __device__ __forceinline__ bool has(int e) const { return at(e) < live; }
  /// Returns the index in the data set of example e of the group. If the micro-batch has no such
  /// example, returns that of its last example. a: arguments of the launch.
  __device__ __forceinline__ std::int64_t number(const FusedSum& a, int e) const {
    return example_number(a, has(e) ? at(e) : live - 1);
  }
};

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
