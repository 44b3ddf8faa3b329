#pragma once
#include "kernels/batch_product.hpp"
#include "kernels/lanes.hpp"
#include "kernels/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// kRows x kColumns numbers a block, kRowsThread x 4 of them a thread, kTerms terms at a time.
template <int columns, int terms = 8>
struct Tile {
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = columns;
  static constexpr int kTerms = terms;
  static constexpr int kRowsThread = columns == 16 ? 4 : 8;
  static constexpr int kColumnsThread = 4;
  static constexpr int kRowGroups = kRows / kRowsThread;
  static constexpr int kThreads = kRowGroups * (kColumns / kColumnsThread);
  static_assert(kThreads == tile_threads(columns) && kThreads % kWarp == 0);
  static constexpr int kPad = 4;  // keeps rows 16-byte aligned and spreads them over the banks

  alignas(16) float a[2][kTerms][kRows + kPad];
  alignas(16) float b[2][kTerms][kColumns + kPad];

  static __device__ __forceinline__ int first_row() { return static_cast<int>(blockIdx.x) * kRows; }
  static __device__ __forceinline__ int first_column() {
    return static_cast<int>(blockIdx.y) * kColumns;
  }
  // Within the tile. A thread's rows come in fours, kRows / 2 apart; neighbouring threads hold
  // neighbouring fours.
  static __device__ __forceinline__ int row(int m) {
    return m / 4 * (kRows / 2) + static_cast<int>(threadIdx.x) % kRowGroups * 4 + m % 4;
  }
  static __device__ __forceinline__ int column(int n) {
    return static_cast<int>(threadIdx.x) / kRowGroups * kColumnsThread + n;
  }
};

/// One term of a factor: where it lies, and what it is multiplied by. `offset` < 0: it is zero.
struct Term {
  std::int32_t offset;
  float scale;
};

/// The part of a tile of one factor that this thread carries from global to shared memory:
/// kLines * kTerms / kThreads numbers at (line0 + e line_step, term0 + e term_step).
template <int lines, int terms, int threads>
struct Carrier {
  static constexpr int kCount = lines * terms / threads;
  int line0, line_step, term0, term_step;
  std::int32_t line[kCount];  // offsets; -1 past the end
  float held[kCount];

  __device__ __forceinline__ Carrier(const Factor& f, int first, int end) {
    const int t = static_cast<int>(threadIdx.x);
    line0 = f.along_terms ? t / terms : t % lines;
    term0 = f.along_terms ? t % terms : t / lines;
    line_step = f.along_terms ? threads / terms : 0;
    term_step = f.along_terms ? 0 : threads / lines;
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      const int n = first + line0 + e * line_step;
      line[e] = n < end ? offset(f.line, n) : -1;
    }
  }

  /// Into registers: terms from `at` on, each found by find(term).
  template <class Find>
  __device__ __forceinline__ void take(const float* data, int at, const Find& find) {
    Term term = find(at + term0);
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      if (e > 0 && term_step != 0) term = find(at + term0 + e * term_step);
      held[e] = line[e] >= 0 && term.offset >= 0 ? data[line[e] + term.offset] * term.scale : 0.0f;
    }
  }

  template <int width>
  __device__ __forceinline__ void put(float (&tile)[terms][width]) const {
    CUDP_UNROLL for (int e = 0; e < kCount; ++e)
        tile[term0 + e * term_step][line0 + e * line_step] = held[e];
  }
};

/// What a thread adds up: its part of a tile, and of the sums over the right factor's columns.
template <class T>
struct Sums {
  float cell[T::kRowsThread][T::kColumnsThread];
  float column[T::kColumnsThread];

  __device__ __forceinline__ void clear() {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      column[n] = 0.0f;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) cell[m][n] = 0.0f;
    }
  }
  __device__ __forceinline__ void add(float factor, const Sums& s) {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      column[n] += factor * s.column[n];
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) cell[m][n] += factor * s.cell[m][n];
    }
  }
  /// Every number squared; the columns' where asked.
  __device__ __forceinline__ float square(bool with_columns) const {
    float sum = 0.0f;
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      if (with_columns) sum += column[n] * column[n];
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) sum += cell[m][n] * cell[m][n];
    }
    return sum;
  }
};

/// sums += a(row, term) b(term, column) over the terms in order, for this block's tile, and the
/// column sums of b. Loads of the next terms overlap with the arithmetic on these; after(n) is
/// called when n terms are done, every T::kTerms. All threads must call.
template <class T, class FindA, class FindB, class After>
__device__ __forceinline__ void multiply_tile(const Factor& a, int rows, const FindA& find_a,
                                              const Factor& b, int columns, const FindB& find_b,
                                              int terms, T& tile, Sums<T>& sums,
                                              const After& after) {
  Carrier<T::kRows, T::kTerms, T::kThreads> carry_a(a, T::first_row(), rows);
  Carrier<T::kColumns, T::kTerms, T::kThreads> carry_b(b, T::first_column(), columns);
  if (terms > 0) {
    carry_a.take(a.data, 0, find_a);
    carry_b.take(b.data, 0, find_b);
  }
  int half = 0;
  for (int at = 0; at < terms; at += T::kTerms, half ^= 1) {
    carry_a.put(tile.a[half]);
    carry_b.put(tile.b[half]);
    __syncthreads();  // the other half is free: whoever read it has passed this barrier once more
    if (at + T::kTerms < terms) {
      carry_a.take(a.data, at + T::kTerms, find_a);
      carry_b.take(b.data, at + T::kTerms, find_b);
    }
    CUDP_UNROLL for (int k = 0; k < T::kTerms; ++k) {
      const Four y = load_four(&tile.b[half][k][T::column(0)]);
      CUDP_UNROLL for (int four = 0; four < T::kRowsThread / 4; ++four) {
        const Four x = load_four(&tile.a[half][k][T::row(4 * four)]);
        CUDP_UNROLL for (int m = 0; m < 4; ++m) CUDP_UNROLL for (int n = 0; n < 4; ++n)
            sums.cell[4 * four + m][n] += x.v[m] * y.v[n];
      }
      CUDP_UNROLL for (int n = 0; n < 4; ++n) sums.column[n] += y.v[n];
    }
    after(at + T::kTerms);
  }
}

// grid: row tiles, column tiles. block: Tile::kThreads. static smem: 2 tiles of 8 terms (5.5 to
// 8.5 KB), or of 32 (22 KB). A multiprocessor holds 512 threads of the former, 256 of the latter.
template <int tile_columns, int tile_terms = 8>
__global__ void __launch_bounds__(Tile<tile_columns, tile_terms>::kThreads)
    batch_product_kernel(BatchProduct p) {
  using T = Tile<tile_columns, tile_terms>;
  CUDP_SHARED(T, tile, );
  const int rows = live_examples(p.batch) * p.rows_per_example;
  if (T::first_row() >= rows) return;

  Sums<T> sums;
  sums.clear();
  const auto find_a = [&](int t) { return Term{t < p.terms ? offset(p.a.term, t) : -1, 1.0f}; };
  const auto find_b = [&](int t) { return Term{t < p.terms ? offset(p.b.term, t) : -1, 1.0f}; };
  multiply_tile<T>(p.a, rows, find_a, p.b, p.columns, find_b, p.terms, tile, sums, [](int) {});

  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int column = T::first_column() + T::column(n);
    if (column >= p.columns) continue;
    float* const out = p.out + offset(p.out_column, column);
    const float bias = p.bias != nullptr ? p.bias[column] : 0.0f;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int row = T::first_row() + T::row(m);
      if (row < rows) out[offset(p.out_row, row)] = sums.cell[m][n] + bias;
    }
  }
}

/// True for the threads that hold the bias's gradient: one for each column of the first row tile.
template <class T>
__device__ __forceinline__ bool holds_bias() {
  return blockIdx.x == 0 && T::row(0) == 0;
}

/// Calls body(place, number) for every number of the gradient that this thread holds.
template <class T, class Body>
__device__ __forceinline__ void for_each_place(const WeightGradient& g, const Sums<T>& sums,
                                               const Body& body) {
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int column = T::first_column() + T::column(n);
    if (column >= g.columns) continue;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int row = T::first_row() + T::row(m);
      if (row < g.rows) body(static_cast<std::int64_t>(column) * g.rows + row, sums.cell[m][n]);
    }
    if (holds_bias<T>())
      body(static_cast<std::int64_t>(g.columns) * g.rows + column, sums.column[n]);
  }
}

// grid: row tiles, column tiles, examples. block: Tile::kThreads. static smem: as above. A
// multiprocessor holds 512 threads.
template <int tile_columns>
__global__ void __launch_bounds__(Tile<tile_columns>::kThreads)
    weight_gradient_norm_kernel(WeightGradientNorm a) {
  using T = Tile<tile_columns>;
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
  multiply_tile<T>(g.x, g.rows, find(g.x.term), g.dy, g.columns, find(g.dy.term), terms, tile, sums,
                   [](int) {});

  // Past the last row or column the tile holds zeros.
  float square = 0.0f;
  if (a.transform.mean == nullptr)
    square = sums.square(holds_bias<T>());
  else
    for_each_place<T>(g, sums, [&](std::int64_t at, float v) {
      square += transformed_square(a.transform, at, v);
    });
  square = block_sum(square, partial);
  const unsigned which = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) a.parts[static_cast<std::int64_t>(which) * g.batch.room + e] = square;
}

// grid: row tiles, column tiles, groups of examples_per_block examples. block: Tile::kThreads.
// static smem: as above. A multiprocessor holds 384 threads; the 2 leaves the compiler room to
// keep everything in registers.
template <int tile_columns>
__global__ void __launch_bounds__(Tile<tile_columns>::kThreads, tile_columns == 64 ? 2 : 6)
    weight_gradient_sum_kernel(WeightGradientSum a) {
  using T = Tile<tile_columns>;
  CUDP_SHARED(T, tile, );
  const WeightGradient& g = a.gradient;
  const int live = live_examples(g.batch);
  const int first = static_cast<int>(blockIdx.z) * a.examples_per_block;
  if (first >= live) return;
  const int examples = first + a.examples_per_block < live ? a.examples_per_block : live - first;
  const auto factor_of = [&](int e) {
    return a.factors != nullptr ? a.factors[static_cast<std::int64_t>(first + e) * a.factor_stride]
                                : 1.0f;
  };

  // An example of several terms is added up by itself, exactly as its norm saw it, in a round of
  // whole steps, and weighed then. Examples of one term share a round and are weighed as they come.
  const bool shared = g.terms_per_example == 1;
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
  multiply_tile<T>(g.x, g.rows, find(g.x.term, false), g.dy, g.columns, find(g.dy.term, true),
                   shared ? round : examples * round, tile, one, [&](int done) {
                     if (done % round != 0) return;
                     all.add(shared ? 1.0f : factor_of(done / round - 1), one);
                     one.clear();
                   });

  float factors = 0.0f;
  if (a.transform.mean != nullptr)
    for (int e = 0; e < examples; ++e) factors += factor_of(e);
  for_each_place<T>(g, all, [&](std::int64_t at, float v) {
    if (a.transform.mean != nullptr)
      v = (v - factors * a.transform.mean[at]) * a.transform.inverse[at];
    if (a.sum != nullptr)
      atomicAdd(a.sum + at, to_fixed(v, a.inverse_grid));
    else
      a.gradients[first * a.gradients_stride + at] = v;
  });
}

}  // namespace cudp::inline CUDP_SIMT
