#pragma once
#include <type_traits>

#include "kernels/common/lanes.hpp"
#include "kernels/common/loss_exponent.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/products/half_tile.cuh"
#include "kernels/products/sequence_gradient.hpp"

namespace cudp::inline CUDP_SIMT {

/// Types of the tiles into which a weight gradient is divided, one per block: 64 x 64 numbers, 64 x
/// 32, 32 x 64 (Low), and 64 x 64 by tensor cores in fp16. sequence_tile() chooses the size.
using WideSequenceTile = FloatTile<64>;
using ThinSequenceTile = FloatTile<32>;
using LowSequenceTile = FloatTile<64, 8, 32>;
using TensorSequenceTile = HalfTile;

/// Number of blocks of sequence_gradient_sum_kernel<T> that must fit on a multiprocessor.
template <class T>
inline constexpr int kSequenceSumBlocks = 384 / T::kThreads;

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

  /// Returns whether this block also computes the gradient of the bias. The blocks whose tile is at
  /// the top of the matrix do.
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
    const int first = late(column);
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      const int j = first + T::column(n);
      if (j >= part.columns) continue;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        const int i = row + T::row(m);
        if (i < part.rows) body(weight(i, j), sums.cell[m][n]);
      }
      if (holds_bias()) body(static_cast<std::int64_t>(part.bias) + j, sums.column[n]);
    }
  }
};

/// One example of the micro-batch: its index and its number of positions. If it has no positions,
/// none of its numbers are read. factor: its gradient is multiplied by this factor before it is
/// added. exponent: dy is multiplied by 2^(exponent - 127) before it is rounded to fp16.
struct SequenceText {
  int example = 0;
  int length = 0;
  float factor = 0.0f;
  u32 exponent = 127;
};

/// Returns example e of the micro-batch. For a HalfTile, `exponent` is chosen so that the largest
/// derivative of the example's loss with respect to a logit, times 2^(exponent - 127), is in [32,
/// 64). If that derivative is below 2^-25, the factor is 2^30. T: type of the tile.
template <class T>
__device__ __forceinline__ SequenceText sequence_text(const SequenceGradient& g, int e,
                                                      float factor = 1.0f) {
  SequenceText text{e, g.length[e], factor};
  if constexpr (std::is_same_v<T, HalfTile>)
    text.exponent = loss_exponent(g.logit_gradients, g.outputs, e);
  return text;
}

/// Computes the gradients of one example after another: for each, the numbers of the block's tile
/// that belong to this thread. While the last terms of an example are multiplied, the first terms
/// of the next example are being loaded. T: type of the tile.
template <class T>
class SequenceProduct {
 public:
  /// Starts to load the first terms of `first`. at: position of the tile; must outlive this object.
  /// tile: the block's buffers.
  __device__ __forceinline__ SequenceProduct(const SequenceTile<T>& at, T& tile, SequenceText first)
      : at_(at),
        tile_(tile),
        x_(carrier<T::kRows>(at.part.x, at.row, at.part.rows, at.part.x_in_fours)),
        dy_(carrier<T::kColumns>(at.part.dy, at.column, at.part.columns, at.part.dy_in_fours)) {
    take(first, 0);
  }

  /// Computes this thread's numbers of the gradient of `text`, and writes them to `sums`. text: the
  /// same as `first` of the constructor or `next` of the previous call. next: the text of the next
  /// call, or one without positions if there is none. All threads must call it.
  __device__ __forceinline__ void multiply(SequenceText text, SequenceText next, Sums<T>& sums) {
    sums.clear();
    int begin = 0;
    do {  // at least once: the terms of a text without positions are zeros
      if constexpr (kIsHalf) {
        x_.put(tile_.a[half_], 1.0f);
        dy_.put(tile_.b[half_], ScalarLanes::from_bits(text.exponent << 23));
      } else {
        x_.template put<T>(tile_.a[half_]);
        dy_.template put<T>(tile_.b[half_]);
      }
      __syncthreads();  // before it, all threads have finished reading the other half
      begin += T::kTerms;
      const bool has_more = begin < text.length;
      take(has_more ? text : next, has_more ? begin : 0);
      tile_.template multiply<true>(half_, sums, at_.has_bias());
      half_ ^= 1;
    } while (begin < text.length);
    if constexpr (kIsHalf) scale(sums, ScalarLanes::from_bits((254 - text.exponent) << 23));
  }

 private:
  static constexpr bool kIsHalf = std::is_same_v<T, HalfTile>;

  template <int lines>
  using CarrierOf =
      std::conditional_t<kIsHalf, HalfCarrier, Carrier<lines, T::kTerms, T::kThreads>>;
  template <int lines>
  static __device__ __forceinline__ CarrierOf<lines> carrier(const float* data, int first, int end,
                                                             bool in_fours) {
    if constexpr (kIsHalf)
      return HalfCarrier(first, end, in_fours);
    else
      return CarrierOf<lines>(Factor{data, {}, {}, false}, first, end);
  }

  /// Loads the terms of `text` from position `begin` on into registers. Terms past the end of the
  /// text are 0.
  __device__ __forceinline__ void take(SequenceText text, int begin) {
    const SequencePart& part = at_.part;
    x_.take(part.x, begin, [&](int t) {
      const int place = t + part.x_shift;
      return t < text.length && place >= 0 && place < text.length
                 ? Term{text.example * part.x_example + place * part.x_place, 1.0f}
                 : Term{-1, 0.0f};
    });
    dy_.take(part.dy, begin, [&](int t) {
      return t < text.length ? Term{text.example * part.dy_example + t * part.dy_place, 1.0f}
                             : Term{-1, 0.0f};
    });
  }

  const SequenceTile<T>& at_;
  T& tile_;
  CarrierOf<T::kRows> x_;
  CarrierOf<T::kColumns> dy_;
  int half_ = 0;  // index of the buffer of the tile that is used next
};

// Computes the squared norms of tiles of gradients. grid: tiles, 1, examples. block: T::kThreads.
// static smem: two buffers of T::kTerms terms each, at most 8.5 KB in float32 and 9 KB with tensor
// cores. At least 512 threads fit on a multiprocessor (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kNormBlocks)
    sequence_gradient_norm_kernel(SequenceGradientNorm a) {
  CUDP_SHARED(T, tile, );
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  const auto e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  const SequenceTile<T> at(a.gradient);
  const SequenceText text = sequence_text<T>(a.gradient, e);
  Sums<T> sums;
  SequenceProduct<T>(at, tile, text).multiply(text, {}, sums);
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
  const SequenceText text = sequence_text<T>(a.gradient, e);
  Sums<T> sums;
  SequenceProduct<T>(at, tile, text).multiply(text, {}, sums);
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
  const int first = late(at.column);
  CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
    const int j = first + T::column(n);
    if (j >= at.part.columns) continue;
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int i = at.row + T::row(m);
      if (i < at.part.rows) units.cell[m][n] += transformed(at.weight(i, j), one.cell[m][n]);
    }
    if (at.holds_bias())
      units.column[n] += transformed(static_cast<std::int64_t>(at.part.bias) + j, one.column[n]);
  }
}

// Adds gradients. grid: tiles, 1, stripes. block: T::kThreads. static smem: 9 KB at most. At least
// 384 threads fit on a multiprocessor (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, kSequenceSumBlocks<T>)
    sequence_gradient_sum_kernel(SequenceGradientSum a) {
  CUDP_SHARED(T, tile, );
  const int live = live_examples(a.gradient.batch);
  // Returns the first of the block's texts from index e on that is not skipped. If there is none,
  // returns a text with the index `live`.
  const auto text_from = [&](int e) {
    for (; e < live; e += static_cast<int>(gridDim.z)) {
      const float factor = a.factors[static_cast<std::int64_t>(e) * a.factor_stride];
      if (factor != 0.0f) return sequence_text<T>(a.gradient, e, factor);
    }
    return SequenceText{live};
  };
  SequenceText text = text_from(static_cast<int>(blockIdx.z));
  const SequenceTile<T> at(a.gradient);
  const float inverse_grid = a.scale->inverse_grid;
  SequenceProduct<T> product(at, tile, text);
  UnitSums<T> units;
  units.clear();
  for (int texts = 1; text.example < live; ++texts) {
    const SequenceText next = text_from(text.example + static_cast<int>(gridDim.z));
    Sums<T> one;
    product.multiply(text, next, one);
    add_sequence(a, at, text.factor * inverse_grid, one, units);
    if (texts % kMaxExamplesAtOnce == 0 || next.example >= live) {
      at.for_each_place(units, [&](std::int64_t i, std::int32_t v) {
        atomicAdd(a.sum + i, static_cast<FixedPoint>(static_cast<long long>(v)));
      });
      units.clear();
    }
    text = next;
  }
}

}  // namespace cudp::inline CUDP_SIMT
