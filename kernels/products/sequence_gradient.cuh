#pragma once
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/products/sequence_gradient.hpp"
#include "kernels/products/tile.cuh"

namespace cudp::inline CUDP_SIMT {

/// Types of the tiles into which a weight gradient is divided, one per block: 64 x 64 numbers, 64 x
/// 32, 32 x 64 (Low), and 64 x 64 by tensor cores. sequence_tile() chooses the size.
using WideSequenceTile = FloatTile<64>;
using ThinSequenceTile = FloatTile<32>;
using LowSequenceTile = FloatTile<64, 8, 32>;
using TensorSequenceTile = TensorTile<64>;

/// The tile of a layer's weight gradient that this block computes, and the weight matrix (part) it
/// belongs to.
template <class T>
struct SequenceTile {
  SequencePart part;
  int row;  ///< first row of the tile, in its part of the gradient
  int column;

  __device__ __forceinline__ explicit SequenceTile(const SequenceGradient& g) : part(g.part[0]) {
    const auto tile = static_cast<int>(blockIdx.x);
    CUDP_UNROLL for (int i = 1; i < kMaxSequenceParts; ++i) {
      if (i < g.parts && tile >= g.part[i].first_tile) part = g.part[i];
    }
    const int down = (part.rows + T::kRows - 1) / T::kRows;
    const int within = tile - part.first_tile;
    row = within % down * T::kRows;
    column = within / down * T::kColumns;
  }

  /// Returns whether this block also computes the gradient of the bias: blocks at the top of the
  /// matrix do.
  __device__ __forceinline__ bool has_bias() const { return part.bias >= 0 && row == 0; }
  __device__ __forceinline__ bool holds_bias() const { return has_bias() && T::row(0) == 0; }

  /// Returns the index, among the layer's parameters, of the weight in row i and column j of this
  /// matrix.
  __device__ __forceinline__ std::int64_t weight(int i, int j) const {
    return static_cast<std::int64_t>(part.weight) + static_cast<std::int64_t>(j) * part.rows + i;
  }

  /// Calls body(index, number) for every number of the gradient that this thread has in `sums`.
  /// index: index of the number's parameter among those of the layer. S: type of `sums`.
  template <class S, class Body>
  __device__ __forceinline__ void for_each_place(const S& sums, const Body& body) const {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      const int j = column + T::column(n);
      if (j >= part.columns) continue;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        const int i = row + T::row(m);
        if (i < part.rows) body(weight(i, j), sums.cell[m][n]);
      }
      if (holds_bias()) body(static_cast<std::int64_t>(part.bias) + j, sums.column[n]);
    }
  }

  /// Computes this tile of the gradient of example e, which has `length` positions, and writes the
  /// thread's numbers to `sums`. half: index (0 or 1) of the buffer of `tile` that is used next;
  /// pass the same variable for every example. All threads must call it.
  __device__ __forceinline__ void multiply(int e, int length, T& tile, int& half,
                                           Sums<T>& sums) const {
    const Factor x{part.x, {}, {}, false};
    const Factor dy{part.dy, {}, {}, false};
    Carrier<T::kRows, T::kTerms, T::kThreads> carry_a(x, row, part.rows);
    Carrier<T::kColumns, T::kTerms, T::kThreads> carry_b(dy, column, part.columns);
    const auto find_a = [&](int t) {
      const int place = t + part.x_shift;
      return t < length && place >= 0 && place < length
                 ? Term{e * part.x_example + place * part.x_place, 1.0f}
                 : Term{-1, 0.0f};
    };
    const auto find_b = [&](int t) {
      return t < length ? Term{e * part.dy_example + t * part.dy_place, 1.0f} : Term{-1, 0.0f};
    };
    sums.clear();
    if (length > 0) {
      carry_a.take(x.data, 0, find_a);
      carry_b.take(dy.data, 0, find_b);
    }
    for (int at = 0; at < length; at += T::kTerms, half ^= 1) {
      carry_a.template put<T>(tile.a[half]);
      carry_b.template put<T>(tile.b[half]);
      __syncthreads();  // threads that read the other half have passed this barrier once more
      if (at + T::kTerms < length) {
        carry_a.take(x.data, at + T::kTerms, find_a);
        carry_b.take(dy.data, at + T::kTerms, find_b);
      }
      tile.template multiply<true>(half, sums, has_bias());
    }
  }
};

// Computes the squared norms of tiles of gradients. grid: tiles, 1, examples. block: T::kThreads.
// static smem: 2 tiles of 8 terms in float32 (8.5 KB at most), of 16 by tensor cores (18 KB). A
// multiprocessor holds 512 threads in float32, 384 by tensor cores.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    sequence_gradient_norm_kernel(SequenceGradientNorm a) {
  CUDP_SHARED(T, tile, );
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  const auto e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  const SequenceTile<T> at(a.gradient);
  Sums<T> sums;
  int half = 0;
  at.multiply(e, a.gradient.length[e], tile, half, sums);
  float square = 0.0f;
  if (a.transform.mean == nullptr)
    square = sums.square(at.holds_bias());
  else
    at.for_each_place(
        sums, [&](std::int64_t i, float v) { square += transformed_square(a.transform, i, v); });
  square = block_sum(square, partial);
  if (threadIdx.x == 0)
    a.parts[static_cast<std::int64_t>(blockIdx.x) * a.gradient.batch.capacity + e] = square;
}

// Writes gradients of examples. grid: tiles, 1, examples. block: T::kThreads. static smem: a tile.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    sequence_gradient_rows_kernel(SequenceGradientRows a) {
  CUDP_SHARED(T, tile, );
  const auto e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  const SequenceTile<T> at(a.gradient);
  Sums<T> sums;
  int half = 0;
  at.multiply(e, a.gradient.length[e], tile, half, sums);
  at.for_each_place(sums, [&](std::int64_t i, float v) { a.gradients[e * a.stride + i] = v; });
}

/// Adds one example's gradient to the integer sums: every number is multiplied by `scale`, rounded
/// to an integer and added. With coordinate-wise clipping the numbers are (gradient - mean) *
/// inverse. a: arguments of the kernel. at: the tile. one: the thread's numbers of the example's
/// gradient. units: the thread's integer sums.
template <class T>
__device__ __forceinline__ void add_sequence(const SequenceGradientSum& a,
                                             const SequenceTile<T>& at, float scale,
                                             const Sums<T>& one, UnitSums<T>& units) {
  if (a.transform.mean == nullptr) {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      units.column[n] += saturated_product(scale, one.column[n]);
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        units.cell[m][n] += saturated_product(scale, one.cell[m][n]);
      }
    }
    return;
  }
  const auto transformed = [&](std::int64_t i, float v) {
    return saturated_product(scale, (v - a.transform.mean[i]) * a.transform.inverse[i]);
  };
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int j = at.column + T::column(n);
    if (j >= at.part.columns) continue;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int i = at.row + T::row(m);
      if (i < at.part.rows) units.cell[m][n] += transformed(at.weight(i, j), one.cell[m][n]);
    }
    if (at.holds_bias())
      units.column[n] += transformed(static_cast<std::int64_t>(at.part.bias) + j, one.column[n]);
  }
}

// Adds gradients. grid: tiles, 1, groups of examples_per_block examples. block: T::kThreads. static
// smem: <= 8.5 KB or 18 KB. A multiprocessor holds 384 threads in float32, 256 by tensor cores.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kSumBlocks)
    sequence_gradient_sum_kernel(SequenceGradientSum a) {
  CUDP_SHARED(T, tile, );
  const int live = live_examples(a.gradient.batch);
  const int first = static_cast<int>(blockIdx.z) * a.examples_per_block;
  const int end = first + a.examples_per_block < live ? first + a.examples_per_block : live;
  if (first >= end) return;
  const SequenceTile<T> at(a.gradient);
  const float inverse_grid = a.scale->inverse_grid;
  UnitSums<T> units;
  units.clear();
  int half = 0;
  for (int e = first; e < end; ++e) {
    const float factor = a.factors[static_cast<std::int64_t>(e) * a.factor_stride];
    if (factor == 0.0f) continue;
    Sums<T> one;
    at.multiply(e, a.gradient.length[e], tile, half, one);
    add_sequence(a, at, factor * inverse_grid, one, units);
  }
  at.for_each_place(units, [&](std::int64_t i, std::int32_t v) {
    atomicAdd(a.sum + i, static_cast<FixedPoint>(static_cast<long long>(v)));
  });
}

}  // namespace cudp::inline CUDP_SIMT
