#pragma once
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/products/tile.cuh"
#include "kernels/products/tiled_product.hpp"

namespace cudp::inline CUDP_SIMT {

/// sums += a(row, term) b(term, column) over the terms in order, for this block's tile, and the
/// column sums of b where asked for. Loads of the next terms overlap with the arithmetic on these;
/// after(n) is called when n terms are done, every T::kTerms. All threads must call.
template <bool with_columns, class T, class FindA, class FindB, class After>
__device__ __forceinline__ void multiply_tile(const Factor& a, int rows, const FindA& find_a,
                                              const Factor& b, int columns, const FindB& find_b,
                                              int terms, T& tile, Sums<T>& sums,
                                              const After& after) {
  Carrier<T::kRows, T::kTerms, T::kThreads> carry_a(a, first_row<T>(), rows);
  Carrier<T::kColumns, T::kTerms, T::kThreads> carry_b(b, first_column<T>(), columns);
  if (terms > 0) {
    carry_a.take(a.data, 0, find_a);
    carry_b.take(b.data, 0, find_b);
  }
  int half = 0;
  for (int at = 0; at < terms; at += T::kTerms, half ^= 1) {
    carry_a.template put<T>(tile.a[half]);
    carry_b.template put<T>(tile.b[half]);
    __syncthreads();  // the other half is free: whoever read it has passed this barrier once more
    if (at + T::kTerms < terms) {
      carry_a.take(a.data, at + T::kTerms, find_a);
      carry_b.take(b.data, at + T::kTerms, find_b);
    }
    tile.template multiply<with_columns>(half, sums);
    after(at + T::kTerms);
  }
}

// grid: row tiles, column tiles. block: T::kThreads. static smem: 2 tiles of 8 terms in float32
// (5.5 to 8.5 KB) and if tall (11 and 13 KB), of 16 by tensor cores (12 KB), of 32 if thin (22 and
// 24 KB). A multiprocessor holds 512 threads in float32, 384 to 448 by tensor cores, 256 of thin
// tiles.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) product_kernel(BatchProduct p) {
  CUDP_SHARED(T, tile, );
  const int rows = live_examples(p.batch) * p.rows_per_example;
  if (first_row<T>() >= rows) return;

  Sums<T> sums;
  sums.clear();
  const auto find = [&](const Axis& axis) {
    return [&](int t) { return Term{t < p.terms ? offset_within(axis, t) : -1, 1.0f}; };
  };
  multiply_tile<false>(p.a, rows, find(p.a.term), p.b, p.columns, find(p.b.term), p.terms, tile,
                       sums, [](int) {});

  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int column = first_column<T>() + T::column(n);
    if (column >= p.columns) continue;
    float* const out = p.out + offset(p.out_column, column);
    const float bias = p.bias != nullptr ? p.bias[column] : 0.0f;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int row = first_row<T>() + T::row(m);
      if (row < rows) out[offset(p.out_row, row)] = sums.cell[m][n] + bias;
    }
  }
}

/// True for the threads that hold the bias's gradient: one for each column of the first row tile.
template <class T>
__device__ __forceinline__ bool holds_bias() {
  return blockIdx.x == 0 && T::row(0) == 0;
}

/// Calls body(index, number) for every number of the gradient that this thread holds.
template <class T, class Body>
__device__ __forceinline__ void for_each_place(const WeightGradient& g, const Sums<T>& sums,
                                               const Body& body) {
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int column = first_column<T>() + T::column(n);
    if (column >= g.columns) continue;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int row = first_row<T>() + T::row(m);
      if (row < g.rows) body(static_cast<std::int64_t>(column) * g.rows + row, sums.cell[m][n]);
    }
    if (holds_bias<T>())
      body(static_cast<std::int64_t>(g.columns) * g.rows + column, sums.column[n]);
  }
}

/// Example blockIdx.z's part of the squared norm, from the tile that its block holds. Past the last
/// row or column the tile holds zeros. partial: shared, an entry a warp.
template <class T>
__device__ __forceinline__ void store_norm(const WeightGradientNorm& a, const Sums<T>& sums,
                                           float* partial) {
  float square = 0.0f;
  if (a.transform.mean == nullptr)
    square = sums.square(holds_bias<T>());
  else
    for_each_place<T>(a.gradient, sums, [&](std::int64_t at, float v) {
      square += transformed_square(a.transform, at, v);
    });
  square = block_sum(square, partial);
  const unsigned which = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0)
    a.parts[static_cast<std::int64_t>(which) * a.gradient.batch.capacity + blockIdx.z] = square;
}

/// The examples of a block of WeightGradientSum.
struct ExampleGroup {
  int first, end;

  __device__ __forceinline__ explicit ExampleGroup(const WeightGradientSum& a) {
    const int live = live_examples(a.gradient.batch);
    first = static_cast<int>(blockIdx.z) * a.examples_per_block;
    end = first + a.examples_per_block < live ? first + a.examples_per_block : live;
  }
  static __device__ __forceinline__ float factor(const WeightGradientSum& a, int e) {
    return a.factors != nullptr ? a.factors[static_cast<std::int64_t>(e) * a.factor_stride] : 1.0f;
  }
};

/// Adds to the sum, or stores, what the block's examples come to.
template <class T>
__device__ __forceinline__ void store_sum(const WeightGradientSum& a, const ExampleGroup& group,
                                          const Sums<T>& all) {
  float factors = 0.0f;
  if (a.transform.mean != nullptr)
    for (int e = group.first; e < group.end; ++e) factors += group.factor(a, e);
  for_each_place<T>(a.gradient, all, [&](std::int64_t at, float v) {
    if (a.transform.mean != nullptr)
      v = (v - factors * a.transform.mean[at]) * a.transform.inverse[at];
    if (a.sum != nullptr)
      atomicAdd(a.sum + at, to_fixed(v, a.inverse_grid));
    else
      a.gradients[group.first * a.gradients_stride + at] = v;
  });
}

// grid: row tiles, column tiles, examples. block: T::kThreads. static smem: 2 tiles of 8 terms in
// float32 (5.5 to 8.5 KB), of 16 by tensor cores (12 to 18 KB). A multiprocessor holds 512 threads
// in float32, 384 to 448 by tensor cores.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    weight_gradient_norm_kernel(WeightGradientNorm a) {
  CUDP_SHARED(T, tile, );
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  const WeightGradient& g = a.gradient;
  const int e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(g.batch)) return;

  Sums<T> sums;
  sums.clear();
  const int terms = g.terms_per_example;
  const auto find = [&](const Axis& axis) {
    return [&](int t) { return Term{t < terms ? offset(axis, e * terms + t) : -1, 1.0f}; };
  };
  multiply_tile<true>(g.x, g.rows, find(g.x.term), g.dy, g.columns, find(g.dy.term), terms, tile,
                      sums, [](int) {});

  store_norm<T>(a, sums, partial);
}

// grid: row tiles, column tiles, groups of examples_per_block examples. block: T::kThreads. static
// smem: as above. A multiprocessor holds 384 threads, 256 to 384 by tensor cores; bounds for two
// blocks of 64 columns leave the compiler room to keep everything in registers.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kSumBlocks)
    weight_gradient_sum_kernel(WeightGradientSum a) {
  CUDP_SHARED(T, tile, );
  const WeightGradient& g = a.gradient;
  const ExampleGroup group(a);
  const int first = group.first;
  if (first >= group.end) return;
  const int examples = group.end - first;
  const auto factor_of = [&](int e) { return group.factor(a, first + e); };

  // An example of several terms is added up by itself, exactly as its norm saw it, in a round of
  // whole steps, and weighed then. Examples of one term share a round and are weighed as they come,
  // in float32: what tensor cores take is not to be weighed before it is rounded.
  const bool shared = T::kPrecision == Precision::fp32 && g.terms_per_example == 1;
  const int terms = shared ? examples : g.terms_per_example;
  const int round = (terms + T::kTerms - 1) / T::kTerms * T::kTerms;
  const auto find = [&](const Axis& axis, bool weigh) {
    return [&, weigh](int t) {
      const int e = shared ? t : t / round;
      const int term = shared ? t : t - e * round;
      if (term >= terms) return Term{-1, 0.0f};
      const float factor = factor_of(e);
      if (factor == 0.0f) return Term{-1, 0.0f};
      const int n = shared ? first + t : (first + e) * terms + term;
      return Term{offset(axis, n), weigh && shared ? factor : 1.0f};
    };
  };
  Sums<T> one;
  Sums<T> all;
  one.clear();
  all.clear();
  multiply_tile<true>(g.x, g.rows, find(g.x.term, false), g.dy, g.columns, find(g.dy.term, true),
                      shared ? round : examples * round, tile, one, [&](int done) {
                        if (done % round != 0) return;
                        all.add(shared ? 1.0f : factor_of(done / round - 1), one);
                        one.clear();
                      });

  store_sum<T>(a, group, all);
}

}  // namespace cudp::inline CUDP_SIMT
