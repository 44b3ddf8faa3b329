#pragma once
#include "kernels/common/loss_exponent.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/epilogue.cuh"
#include "kernels/products/half_tile.cuh"
#include "kernels/products/text_product.hpp"
#include "kernels/products/tiled_product.cuh"

namespace cudp::inline CUDP_SIMT {

/// Part of a matrix in shared memory: 64 lines (rows of a, columns of b), of which each has 16
/// summands that are neighbours. Eight lines that ldmatrix reads at once start in different banks.
struct HalfLines {
  static constexpr int kPitch = 24;
  alignas(16) std::uint16_t line[kTileRows][kPitch];

  /// Loads the operands of 32 lines from `first` on: x[m] has lines 16 m .. 16 m + 15, as four
  /// matrices of 8 x 8 numbers. of_rows: as the left operand of a product, otherwise as two right
  /// ones.
  template <bool of_rows>
  __device__ __forceinline__ void load(int first, u32 (&x)[2][4]) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int second = lane / 16 * 8, inner = lane / 8 % 2 * 8;
    CUDP_UNROLL for (int m = 0; m < 2; ++m) {
      const int of = first + 16 * m + lane % 8 + (of_rows ? inner : second);
      ldmatrix_x4(x[m], &line[of][of_rows ? second : inner]);
    }
  }
};

/// Copies this thread's share of 16 summands of 64 lines from global to shared memory: take() loads
/// numbers into registers, put() rounds them to fp16 and stores them. A thread has four
/// neighbouring summands of two lines.
struct LineCarrier {
  const float* data;
  std::int32_t at[2];  ///< offset of each line in memory; -1: its numbers are 0
  int end;             ///< number of summands
  bool in_fours;       ///< whether the four are complete, and at a multiple of 16 bytes
  float held[2][4];

  /// Returns the number of the thread's line e (0 or 1).
  static __device__ __forceinline__ int line(int e) {
    return static_cast<int>(threadIdx.x) / 4 + 32 * e;
  }
  static __device__ __forceinline__ int first() { return static_cast<int>(threadIdx.x) % 4 * 4; }

  /// Loads summands k .. k + 15, whose places in memory `term` has.
  __device__ __forceinline__ void take(const Axis& term, int k) {
    k += first();
    CUDP_UNROLL for (int e = 0; e < 2; ++e) {
      if (in_fours) {
        const bool is_there = at[e] >= 0 && k < end;
        const Four four = is_there ? load_four(data + at[e] + offset_within(term, k)) : Four{};
        CUDP_UNROLL for (int i = 0; i < 4; ++i) { held[e][i] = four.v[i]; }
      } else {
        CUDP_UNROLL for (int i = 0; i < 4; ++i) {
          held[e][i] = at[e] >= 0 && k + i < end ? data[at[e] + offset_within(term, k + i)] : 0.0f;
        }
      }
    }
  }
  /// Stores what take() loaded, times scale[e] for line e. parts: 2 for the larger and the smaller
  /// part of every number, in two buffers.
  template <int parts>
  __device__ __forceinline__ void put(HalfLines (&to)[parts], const float (&scale)[2]) const {
    CUDP_UNROLL for (int e = 0; e < 2; ++e) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int pair = 2 * i;
        const float x = held[e][pair] * scale[e], y = held[e][pair + 1] * scale[e];
        const auto store = [&](HalfLines& lines, u32 word) {
          *reinterpret_cast<u32*>(&lines.line[line(e)][first() + pair]) = word;
        };
        if constexpr (parts == 2) {
          const SplitHalves both = split_halves(x, y);
          store(to[0], both.high);
          store(to[1], both.low);
        } else {
          store(to[0], halves(x, y));
        }
      }
    }
  }
};

/// A block's buffers for 16 summands at a time, two of each. Forward, a and b are in two parts.
/// Backward, b is stored as in HalfTile, because its columns are neighbours in memory.
template <bool forward>
struct TextTile;
template <>
struct TextTile<true> {
  HalfLines a[2][2];
  HalfLines b[2][2];
};
template <>
struct TextTile<false> {
  HalfLines a[2][1];
  alignas(16) std::uint16_t b[2][HalfTile::kTerms][HalfTile::kPitch];
};

// Product of positions of texts with weights. grid: column tiles and row tiles, columns first.
// block: 128, a warp computes 32 x 32 numbers. static smem: 25 KB forward, 11 KB backward. A
// multiprocessor holds 384 or 512 threads.
template <bool forward>
__global__ void __launch_bounds__(HalfTile::kThreads, forward ? 3 : 4)
    text_product_kernel(device::TextProduct a) {
  CUDP_SHARED(TextTile<forward>, tile, );
  CUDP_SHARED(std::uint32_t, exponent, [kTileRows]);
  const device::Product& p = a.product;
  const int across = (p.columns + HalfTile::kColumns - 1) / HalfTile::kColumns;
  const auto block = static_cast<int>(blockIdx.x);
  const int row = block / across * HalfTile::kRows;
  const int column = block % across * HalfTile::kColumns;
  const int places = p.rows_per_example;
  const int rows = live_examples(p.batch) * places;
  if (row >= rows) return;
  const int example = row / places;
  // Whether all rows of the tile are past the end of one text.
  if (row - example * places >= a.length[example] &&
      row + HalfTile::kRows <= (example + 1) * places)
    return;

  LineCarrier of_a{
      .data = p.a.data, .at = {}, .end = p.terms, .in_fours = a.a_in_fours, .held = {}};
  float scale[2];
  CUDP_UNROLL for (int e = 0; e < 2; ++e) {
    const int i = row + LineCarrier::line(e);
    const int text = i / places;
    const bool is_there = i < rows && i - text * places < a.length[text];
    of_a.at[e] = is_there ? offset_within(p.a.line, i) : -1;
    const u32 power = !is_there ? 0
                      : forward ? 127
                                : loss_exponent(a.logit_gradients, a.outputs, text);
    scale[e] = ScalarLanes::from_bits(power << 23);
    if (LineCarrier::first() == 0) exponent[LineCarrier::line(e)] = power;
  }
  LineCarrier of_b{
      .data = p.b.data, .at = {}, .end = p.terms, .in_fours = a.b_in_fours, .held = {}};
  CUDP_UNROLL for (int e = 0; e < 2; ++e) {
    const int j = column + LineCarrier::line(e);
    of_b.at[e] = j < p.columns ? offset_within(p.b.line, j) : -1;
  }
  HalfCarrier across_b(column, p.columns, a.b_in_fours);
  const auto take = [&](int k) {
    of_a.take(p.a.term, k);
    if constexpr (forward)
      of_b.take(p.b.term, k);
    else
      across_b.take(p.b.data, k, ProductTerms{.axis = p.b.term, .terms = p.terms});
  };
  constexpr float kAsTheyAre[2] = {1.0f, 1.0f};

  Sums<HalfTile> sums;
  sums.clear();
  take(0);
  int half = 0;
  for (int k = 0; k < p.terms; k += HalfTile::kTerms, half ^= 1) {
    of_a.put(tile.a[half], scale);
    if constexpr (forward)
      of_b.put(tile.b[half], kAsTheyAre);
    else
      across_b.put(tile.b[half], 1.0f);
    __syncthreads();  // threads that read the other half have passed this barrier once more
    take(k + HalfTile::kTerms);
    const auto multiply = [&](const u32(&x)[2][4], const u32(&y)[2][4]) {
      CUDP_UNROLL for (int n = 0; n < 4; ++n) {
        const HalfTile::Column of_column = HalfTile::column_of(y, n);
        CUDP_UNROLL for (int m = 0; m < 2; ++m) { HalfTile::add(sums, m, n, x[m], of_column); }
      }
    };
    u32 x[2][4], y[2][4];
    tile.a[half][0].template load<true>(HalfTile::warp_row(), x);
    if constexpr (forward) {
      u32 low[2][4];
      tile.b[half][1].template load<false>(HalfTile::warp_column(), low);
      multiply(x, low);
      tile.b[half][0].template load<false>(HalfTile::warp_column(), y);
      tile.a[half][1].template load<true>(HalfTile::warp_row(), low);
      multiply(low, y);
    } else {
      HalfTile::load_columns(tile.b[half], y);
    }
    multiply(x, y);
  }

  store_finished<forward, !forward>(p.epilogue, [&](const auto& finish) {
    CUDP_UNROLL for (int n = 0; n < HalfTile::kColumnsThread; ++n) {
      const int j = column + HalfTile::column(n);
      if (j >= p.columns) continue;
      float* const out = p.out + offset_within(p.out_column, j);
      const float bias = p.bias != nullptr ? p.bias[j] : 0.0f;
      CUDP_UNROLL for (int m = 0; m < HalfTile::kRowsThread; ++m) {
        const u32 power = exponent[HalfTile::row(m)];
        if (power == 0) continue;
        const int i = row + HalfTile::row(m);
        const float back = ScalarLanes::from_bits((254 - power) << 23);
        out[offset_within(p.out_row, i)] = finish(sums.cell[m][n] * back + bias, [&] {
          return p.epilogue.y[offset_within(p.y_column, j) + offset_within(p.y_row, i)];
        });
      }
    }
  });
}

}  // namespace cudp::inline CUDP_SIMT
