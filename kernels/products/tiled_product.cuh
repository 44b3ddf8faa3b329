#pragma once
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/layers/epilogue.cuh"
#include "kernels/products/tile.cuh"
#include "kernels/products/tiled_product.hpp"

namespace cudp::inline CUDP_SIMT {

/// Computes this block's tile of a matrix product: adds a(row, t) * b(t, column) to `sums` for t =
/// 0 .. terms - 1, in order. with_columns: also adds up the columns of b. find_a(t) and find_b(t)
/// return the Term (offset and factor) of a and of b at index t. The loads for the next t overlap
/// with the arithmetic. After every T::kTerms indices, calls after(n), with n the number of indices
/// done so far. All threads must call the function. S: type of the thread's sums. FindA, FindB,
/// After: types of the functions.
template <bool with_columns, class T, class S, class FindA, class FindB, class After>
__device__ __forceinline__ void multiply_tile(const Factor& a, int rows, const FindA& find_a,
                                              const Factor& b, int columns, const FindB& find_b,
                                              int terms, T& tile, S& sums, const After& after) {
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
    __syncthreads();  // before it, all threads have finished reading the other half
    if (at + T::kTerms < terms) {
      carry_a.take(a.data, at + T::kTerms, find_a);
      carry_b.take(b.data, at + T::kTerms, find_b);
    }
    tile.template multiply<with_columns>(half, sums);
    after(at + T::kTerms);
  }
}

/// Function object for multiply_tile() that finds the summands of a plain product: returns the Term
/// (offset and factor 1) at index t of the summed dimension. Indices from `terms` on give zeros.
struct ProductTerms {
  const Axis& axis;
  int terms;
  __device__ __forceinline__ Term operator()(int t) const {
    return {t < terms ? offset_within(axis, t) : -1, 1.0f};
  }
};

// Computes a matrix product. grid: row tiles, column tiles. block: T::kThreads. static smem: two
// buffers of T::kTerms terms each, for parts of both matrices:
//   float32               8 terms   5.5 to 8.5 KB
//   tensor cores, tall    8 terms   11 or 13 KB
//   tensor cores         16 terms   12 KB
//   thin                 32 terms   22 or 24 KB
// At least this many threads fit on a multiprocessor (__launch_bounds__): 512 in float32, 384 to
// 448 with tensor cores, 256 for thin tiles.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) product_kernel(device::Product p) {
  CUDP_SHARED(T, tile, );
  const int rows = live_examples(p.batch) * p.rows_per_example;
  if (first_row<T>() >= rows) return;

  Sums<T> sums;
  sums.clear();
  multiply_tile<false>(p.a, rows, ProductTerms{.axis = p.a.term, .terms = p.terms}, p.b, p.columns,
                       ProductTerms{.axis = p.b.term, .terms = p.terms}, p.terms, tile, sums,
                       [](int) {});

  store_finished(p.epilogue, [&](const auto& finish) {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      const int column = first_column<T>() + T::column(n);
      if (column >= p.columns) continue;
      float* const out = p.out + offset(p.out_column, column);
      const float bias = p.bias != nullptr ? p.bias[column] : 0.0f;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        const int row = first_row<T>() + T::row(m);
        if (row >= rows) continue;
        out[offset(p.out_row, row)] = finish(sums.cell[m][n] + bias, [&] {
          return p.epilogue.y[offset(p.y_column, column) + offset(p.y_row, row)];
        });
      }
    }
  });
}

/// Returns whether this thread computes part of the bias's gradient, the column sums of dy. In the
/// blocks at the top of the matrix, one thread per column does.
template <class T>
__device__ __forceinline__ bool holds_bias() {
  return blockIdx.x == 0 && T::row(0) == 0;
}

/// Calls body(index, number) for every number of a layer's parameter gradient that this thread has
/// computed. index: the number's index among the layer's parameters. sums: the thread's numbers,
/// whose type is S. g: arguments of the kernel.
template <class T, class S, class Body>
__device__ __forceinline__ void for_each_place(const WeightGradient& g, S& sums, const Body& body) {
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

/// Writes to a.parts the squared norm of this block's tile of one gradient, that of the
/// micro-batch's example number blockIdx.z. partial: shared memory, one element per warp. a:
/// arguments of the kernel. sums: the thread's numbers of the tile.
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

/// Examples of the micro-batch whose weight gradients one thread block adds up: every stripes-th
/// one.
struct Stripe {
  int count;  ///< number of these examples

  __device__ __forceinline__ explicit Stripe(const WeightGradientSum& a) {
    const int left = live_examples(a.gradient.batch) - static_cast<int>(blockIdx.z);
    count = left <= 0 ? 0 : (left - 1) / static_cast<int>(gridDim.z) + 1;
  }
  /// Returns the index in the micro-batch of the block's i-th example.
  static __device__ __forceinline__ int example(int i) {
    return static_cast<int>(blockIdx.z) + i * static_cast<int>(gridDim.z);
  }
  /// Returns the factor of the block's i-th example.
  static __device__ __forceinline__ float factor(const WeightGradientSum& a, int i) {
    return a.factors[static_cast<std::int64_t>(example(i)) * a.factor_stride];
  }
};

/// Adds one example's gradient to the integer sums: multiplies each number by `scale` (clip factor
/// / grid) and rounds it. one: the thread's numbers of the example's gradient. units: the thread's
/// integer sums.
template <class T>
__device__ __forceinline__ void add_plain_example(float scale, const Sums<T>& one,
                                                  UnitSums<T>& units) {
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    units.column[n] += saturated_product(scale, one.column[n]);
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      units.cell[m][n] += saturated_product(scale, one.cell[m][n]);
    }
  }
}

/// Multiplies one example's gradient g by factor / grid, rounds every number to an integer, and
/// adds it to `units`. With coordinate-wise clipping (AdaCliP) the vector that is multiplied is (g
/// - mean) * inverse, with a mean and an inverse scale for each coordinate.
template <class T>
__device__ __forceinline__ void add_example(const WeightGradientSum& a, float factor,
                                            const Sums<T>& one, UnitSums<T>& units) {
  const float scale = factor * a.scale->inverse_grid;
  if (a.transform.mean == nullptr) {
    add_plain_example<T>(scale, one, units);
    return;
  }
  const WeightGradient& g = a.gradient;
  const auto transformed = [&](std::int64_t at, float v) {
    return saturated_product(scale, (v - a.transform.mean[at]) * a.transform.inverse[at]);
  };
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int column = first_column<T>() + T::column(n);
    if (column >= g.columns) continue;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int row = first_row<T>() + T::row(m);
      if (row < g.rows)
        units.cell[m][n] +=
            transformed(static_cast<std::int64_t>(column) * g.rows + row, one.cell[m][n]);
    }
    if (holds_bias<T>())
      units.column[n] +=
          transformed(static_cast<std::int64_t>(g.columns) * g.rows + column, one.column[n]);
  }
}

template <class T>
__device__ __forceinline__ void store_sum(const WeightGradientSum& a, const UnitSums<T>& units) {
  for_each_place<T>(a.gradient, units, [&](std::int64_t at, std::int32_t v) {
    atomicAdd(a.sum + at, static_cast<FixedPoint>(static_cast<long long>(v)));
  });
}

/// Writes this block's tile of the gradient of the micro-batch's example number blockIdx.z. a:
/// arguments of the kernel. sums: the thread's numbers of the tile.
template <class T>
__device__ __forceinline__ void store_gradient(const WeightGradientRows& a, const Sums<T>& sums) {
  for_each_place<T>(a.gradient, sums, [&](std::int64_t at, float v) {
    a.gradients[static_cast<std::int64_t>(blockIdx.z) * a.stride + at] = v;
  });
}

/// Function object for multiply_tile() that finds the summands of example e's gradient: returns the
/// Term (offset and factor 1) at index t of its sums. Indices from `terms` on give zeros.
struct ExampleTerms {
  const Axis& axis;
  int e;
  int terms;
  __device__ __forceinline__ Term operator()(int t) const {
    return {t < terms ? offset(axis, e * terms + t) : -1, 1.0f};
  }
};

/// Computes this block's tile of the gradient of the micro-batch's example number blockIdx.z. All
/// threads must call it. g: arguments of the kernel. tile: shared memory. sums: result, the
/// thread's numbers of the tile.
template <class T>
__device__ __forceinline__ void multiply_example(const WeightGradient& g, T& tile, Sums<T>& sums) {
  const int e = static_cast<int>(blockIdx.z);
  const int terms = g.terms_per_example;
  sums.clear();
  multiply_tile<true>(g.x, g.rows, ExampleTerms{.axis = g.x.term, .e = e, .terms = terms}, g.dy,
                      g.columns, ExampleTerms{.axis = g.dy.term, .e = e, .terms = terms}, terms,
                      tile, sums, [](int) {});
}

// Computes squared norms of weight gradients. grid: row tiles, column tiles, examples. block:
// T::kThreads. static smem: two buffers of T::kTerms terms each, 5.5 to 8.5 KB in float32 and 12 to
// 18 KB with tensor cores. At least this many threads fit on a multiprocessor (__launch_bounds__):
// 512 in float32, 384 to 448 with tensor cores.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    weight_gradient_norm_kernel(WeightGradientNorm a) {
  CUDP_SHARED(T, tile, );
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  if (static_cast<int>(blockIdx.z) >= live_examples(a.gradient.batch)) return;
  Sums<T> sums;
  multiply_example(a.gradient, tile, sums);
  store_norm<T>(a, sums, partial);
}

/// Writes each example's own gradient to a row of a.gradients, for transforms that need the whole
/// gradient. A block computes one tile of one example's gradient, as in the kernel that computes
/// norms.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    weight_gradient_rows_kernel(WeightGradientRows a) {
  CUDP_SHARED(T, tile, );
  if (static_cast<int>(blockIdx.z) >= live_examples(a.gradient.batch)) return;
  Sums<T> sums;
  multiply_example(a.gradient, tile, sums);
  store_gradient<T>(a, sums);
}

/// Function object for multiply_tile(), for the weighted sum of a stripe's gradients in a dense
/// layer, where an example's gradient is a single product. Returns the Term (offset and factor) of
/// the stripe's t-th example. weighs: whether the factor is the example's clip factor / grid; if
/// not, it is 1. An example with clip factor 0 gives zeros.
struct WeighedTerms {
  const WeightGradientSum& a;
  const Stripe& stripe;
  const Axis& axis;
  bool weighs;
  float inverse_grid;
  __device__ __forceinline__ Term operator()(int t) const {
    if (t >= stripe.count) return {-1, 0.0f};
    const float factor = stripe.factor(a, t);
    if (factor == 0.0f) return {-1, 0.0f};
    return {offset(axis, stripe.example(t)), weighs ? factor * inverse_grid : 1.0f};
  }
};

/// Function object for multiply_tile(), for the weighted sum of a stripe's gradients in a
/// convolution, where each number of an example's gradient is a sum of several products. Returns
/// the Term (offset and factor 1) at index t. Each example has `round` consecutive indices; those
/// beyond its last product give zeros. An example with clip factor 0 gives zeros.
struct TermsByRounds {
  const WeightGradientSum& a;
  const Stripe& stripe;
  const Axis& axis;
  int round;
  __device__ __forceinline__ Term operator()(int t) const {
    const int terms = a.gradient.terms_per_example;
    const int e = t / round;
    const int term = t - e * round;
    if (term >= terms || stripe.factor(a, e) == 0.0f) return {-1, 0.0f};
    return {offset(axis, stripe.example(e) * terms + term), 1.0f};
  }
};

// Adds gradients. grid: row tiles, column tiles, stripes of examples. block:
// T::kThreads. static smem: 5.5 to 18 KB. At least this many threads fit on a multiprocessor
// (__launch_bounds__): 384 in float32, 256 to 384 with tensor cores.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kSumBlocks)
    weight_gradient_sum_kernel(WeightGradientSum a) {
  CUDP_SHARED(T, tile, );
  const WeightGradient& g = a.gradient;
  const Stripe stripe(a);
  const int examples = stripe.count;
  if (examples == 0) return;

  // A round is a range of indices of the summed dimension, padded to a multiple of T::kTerms. If
  // each number of a gradient is a sum of several products, every example has a round of its own:
  // its products are summed in the same order as for its norm, and the sum is then scaled and
  // rounded. If each number is a single product, all examples share one round (`shared`): each
  // product is scaled and rounded, and the integers are summed. This requires float32 and no
  // transform.
  const bool shared =
      T::kPrecision == Precision::fp32 && g.terms_per_example == 1 && a.transform.mean == nullptr;
  if constexpr (T::kPrecision == Precision::fp32) {
    if (shared) {
      const float inverse_grid = a.scale->inverse_grid;
      const auto find = [&](const Axis& axis, bool weighs) {
        return WeighedTerms{
            .a = a, .stripe = stripe, .axis = axis, .weighs = weighs, .inverse_grid = inverse_grid};
      };
      UnitSums<T> units;
      units.clear();
      const int round = (examples + T::kTerms - 1) / T::kTerms * T::kTerms;
      multiply_tile<true>(g.x, g.rows, find(g.x.term, false), g.dy, g.columns,
                          find(g.dy.term, true), round, tile, units, [](int) {});
      store_sum<T>(a, units);
      return;
    }
  }
  const int terms = g.terms_per_example;
  const int round = (terms + T::kTerms - 1) / T::kTerms * T::kTerms;
  const auto find = [&](const Axis& axis) {
    return TermsByRounds{.a = a, .stripe = stripe, .axis = axis, .round = round};
  };
  Sums<T> one;
  UnitSums<T> units;
  one.clear();
  units.clear();
  multiply_tile<true>(g.x, g.rows, find(g.x.term), g.dy, g.columns, find(g.dy.term),
                      examples * round, tile, one, [&](int done) {
                        if (done % round != 0) return;
                        const float factor = stripe.factor(a, done / round - 1);
                        if (factor != 0.0f) add_example<T>(a, factor, one, units);
                        one.clear();
                      });
  store_sum<T>(a, units);
}

}  // namespace cudp::inline CUDP_SIMT
