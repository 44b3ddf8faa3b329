#pragma once
// The tiles of tiled_product.cuh: how a block's threads share a matrix product, in float32
// (FloatTile) and by tensor cores (TensorTile). Both say which numbers of the tile a thread adds up
// and how it does; what is around them is the same.
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/products/tile.hpp"

namespace cudp::inline CUDP_SIMT {

/// The sums of a thread of a tile T: its part of the tile, and of the sums over the right factor's
/// columns.
template <class T>
struct Sums {
  float cell[T::kRowsThread][T::kColumnsThread];
  float column[T::kColumnsThread];

  __device__ __forceinline__ void clear() {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      column[n] = 0.0f;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) { cell[m][n] = 0.0f; }
    }
  }
  /// Every number squared; the columns' where asked.
  __device__ __forceinline__ float square(bool with_columns) const {
    float sum = 0.0f;
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      if (with_columns) sum += column[n] * column[n];
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) { sum += cell[m][n] * cell[m][n]; }
    }
    return sum;
  }
};

/// The sums as integers: of gradients of which each was rounded by itself.
template <class T>
struct UnitSums {
  std::int32_t cell[T::kRowsThread][T::kColumnsThread];
  std::int32_t column[T::kColumnsThread];

  __device__ __forceinline__ void clear() {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      column[n] = 0;
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) { cell[m][n] = 0; }
    }
  }
};

/// kRows x kColumns numbers a block, kRowsThread x 4 of them a thread, kTerms terms at a time, by
/// fused multiply-adds in float32.
template <int columns, int terms = 8, int rows = kTileRows>
struct FloatTile {
  static constexpr Precision kPrecision = Precision::fp32;
  static constexpr int kRows = rows;
  static constexpr int kColumns = columns;
  static constexpr int kTerms = terms;
  static constexpr int kRowsThread = columns == 16 ? 4 : 8;
  static constexpr int kColumnsThread = 4;
  static constexpr int kRowGroups = kRows / kRowsThread;
  static constexpr int kThreads = kRowGroups * (kColumns / kColumnsThread);
  static_assert((rows != kTileRows || kThreads == tile_threads(columns)) && kThreads % kWarp == 0);
  // Blocks of a kernel that a multiprocessor is to hold, at least: what registers are kept for.
  static constexpr int kBlocks = terms == kThinTerms ? 4 : 512 / kThreads;
  static constexpr int kNormBlocks = kBlocks;
  static constexpr int kSumBlocks = kThreads == 128 ? 3 : 6;
  static constexpr int kPad = 4;  // keeps rows 16-byte aligned and spreads them over the banks

  alignas(16) float a[2][kTerms][kRows + kPad];
  alignas(16) float b[2][kTerms][kColumns + kPad];

  // Within the tile. A thread's rows come in fours, kRows / 2 apart; neighbouring threads hold
  // neighbouring fours.
  static __device__ __forceinline__ int row(int m) {
    return m / 4 * (kRows / 2) + static_cast<int>(threadIdx.x) % kRowGroups * 4 + m % 4;
  }
  static __device__ __forceinline__ int column(int n) {
    return static_cast<int>(threadIdx.x) / kRowGroups * kColumnsThread + n;
  }

  /// The place of a line in row k of a or b.
  static __device__ __forceinline__ int index(int, int line) { return line; }

  /// sums += a[half] b[half], and the sums over b's columns where asked for (which only the threads
  /// of holds_bias need).
  template <bool with_columns>
  __device__ __forceinline__ void multiply(int half, Sums<FloatTile>& sums, bool = true) const {
    CUDP_UNROLL for (int k = 0; k < kTerms; ++k) {
      const Four y = load_four(&b[half][k][column(0)]);
      CUDP_UNROLL for (int four = 0; four < kRowsThread / 4; ++four) {
        const Four x = load_four(&a[half][k][row(4 * four)]);
        CUDP_UNROLL for (int m = 0; m < 4; ++m) {
          CUDP_UNROLL for (int n = 0; n < 4; ++n) { sums.cell[4 * four + m][n] += x.v[m] * y.v[n]; }
        }
      }
      if (with_columns) CUDP_UNROLL for (int n = 0; n < 4; ++n) {
          sums.column[n] += y.v[n];
        }
    }
  }
  /// A tile with every product rounded to an integer.
  template <bool with_columns>
  __device__ __forceinline__ void multiply(int half, UnitSums<FloatTile>& sums) const {
    CUDP_UNROLL for (int k = 0; k < kTerms; ++k) {
      const Four y = load_four(&b[half][k][column(0)]);
      CUDP_UNROLL for (int four = 0; four < kRowsThread / 4; ++four) {
        const Four x = load_four(&a[half][k][row(4 * four)]);
        CUDP_UNROLL for (int m = 0; m < 4; ++m) {
          CUDP_UNROLL for (int n = 0; n < 4; ++n) {
            sums.cell[4 * four + m][n] += rounded_product(x.v[m], y.v[n]);
          }
        }
      }
      if (with_columns) CUDP_UNROLL for (int n = 0; n < 4; ++n) {
          sums.column[n] += rounded_product(1.0f, y.v[n]);
        }
    }
  }
};

/// The sums over eight columns of b, as its fragments have them: its product with a row of ones.
__device__ __forceinline__ void add_columns(const float (&b)[2], float* columns) {
  constexpr float kOnes[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  float other_rows[2] = {0.0f, 0.0f};
  mma_tf32(columns, other_rows, kOnes, b);
}

/// A tile of tensor cores: rows x columns numbers a block, of which a warp has warp_rows x
/// warp_columns.
template <int rows, int columns, int warp_rows, int warp_columns>
struct WarpTile {
  static constexpr int kRows = rows;
  static constexpr int kColumns = columns;
  static constexpr int kWarpsDown = rows / warp_rows;
  static constexpr int kThreads = kWarpsDown * (columns / warp_columns) * kWarp;
  static constexpr int kRowsThread = warp_rows / 8;
  static constexpr int kColumnsThread = warp_columns / 4;
  static_assert(rows % warp_rows == 0 && columns % warp_columns == 0);
  static_assert(warp_rows % 16 == 0 && warp_columns % 8 == 0);

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ __forceinline__ int warp_row() { return warp() % kWarpsDown * warp_rows; }
  static __device__ __forceinline__ int warp_column() { return warp() / kWarpsDown * warp_columns; }
  // Within the tile; see mma_tf32.
  static __device__ __forceinline__ int row(int m) { return warp_row() + 8 * m + lane() / 4; }
  static __device__ __forceinline__ int column(int n) {
    return warp_column() + n / 2 * 8 + lane() % 4 * 2 + n % 2;
  }
};

template <int columns, int terms>
using TensorWarps =
    WarpTile<terms == kTallTerms ? kTallRows : kTileRows, columns,
             (terms == kTallTerms ? kTallRows : kTileRows) / 2, (columns < 32 ? columns : 32)>;

/// A tile as FloatTile, by tensor cores, half of the rows and at most 32 columns a warp, in steps
/// of 8 terms; of kTallTerms at a time, a tile has twice the rows. Every number is a chain of such
/// steps in the order of the terms, wherever it lies in whatever tile: what an example comes to
/// depends neither on the micro-batch nor on the examples beside it.
template <int columns, int terms = 16>
struct TensorTile : TensorWarps<columns, terms> {
  using Warps = TensorWarps<columns, terms>;
  using Warps::kColumns, Warps::kColumnsThread, Warps::kRows, Warps::kRowsThread, Warps::kThreads;
  using Warps::lane, Warps::row, Warps::warp_column, Warps::warp_row;
  static constexpr Precision kPrecision = Precision::tf32;
  static constexpr bool kTall = terms == kTallTerms;
  static constexpr int kTerms = terms;
  static constexpr int kStep = 8;
  static_assert(kThreads == tile_threads(columns) && kTerms % kStep == 0);
  static constexpr int kBlocks = kTall                                  ? 384 / kThreads
                                 : columns == 64 || terms == kThinTerms ? 4
                                 : columns == 32                        ? 6
                                                                        : 7;
  static constexpr int kNormBlocks = columns == 64 ? 3 : kBlocks;
  static constexpr int kSumBlocks = columns == 64 ? 2 : columns == 32 ? 4 : 6;
  // Lane 4 g + t reads (t, g), and writes one or more lines of all terms or one term of all lines:
  // with rows 8 banks apart, and every four of them pushed on, each meets every bank once.
  static constexpr int kPad = 8;
  static constexpr int kPush = 32 / kTerms;
  static_assert((kTerms / 4 - 1) * kPush < kPad);

  float a[2][kTerms][kRows + kPad];
  float b[2][kTerms][kColumns + kPad];

  static __device__ __forceinline__ int index(int k, int line) { return line + k / 4 * kPush; }

  /// The sums over b's columns are made by the tiles of the first rows alone.
  template <bool with_columns>
  __device__ __forceinline__ void multiply(int half, Sums<TensorTile>& sums,
                                           bool is_first = blockIdx.x == 0) const {
    CUDP_UNROLL for (int k = 0; k < kTerms; k += kStep) {
      const int t = lane() % 4;
      const int g = lane() / 4;
      float y[kColumnsThread / 2][2];
      CUDP_UNROLL for (int n = 0; n < kColumnsThread / 2; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          y[n][i] = b[half][k + 4 * i + t][index(k + 4 * i, warp_column() + 8 * n + g)];
        }
      }
      CUDP_UNROLL for (int m = 0; m < kRowsThread; m += 2) {
        float x[4];
        CUDP_UNROLL for (int i = 0; i < 4; ++i) {
          x[i] = a[half][k + i / 2 * 4 + t][index(k + i / 2 * 4, row(m + i % 2))];
        }
        CUDP_UNROLL for (int n = 0; n < kColumnsThread; n += 2) {
          mma_tf32(&sums.cell[m][n], &sums.cell[m + 1][n], x, y[n / 2]);
        }
      }
      if (with_columns && is_first && warp_row() == 0)
        CUDP_UNROLL for (int n = 0; n < kColumnsThread; n += 2) {
          add_columns(y[n / 2], &sums.column[n]);
        }
    }
  }
};

/// A block's tile starts here.
template <class T>
__device__ __forceinline__ int first_row() {
  return static_cast<int>(blockIdx.x) * T::kRows;
}
template <class T>
__device__ __forceinline__ int first_column() {
  return static_cast<int>(blockIdx.y) * T::kColumns;
}

/// One term of a factor: where it lies, and what it is multiplied by. `offset` < 0: it is zero.
struct Term {
  std::int32_t offset;
  float scale;
};

/// The part of a tile of one factor that this thread carries from global to shared memory: kCount
/// numbers, the e-th at (line_of(e), term_of(e)). Neighbouring threads have neighbouring terms
/// (`along`) or lines; in a tall tile several lines of a term, whose place is asked for once.
template <int lines, int terms, int threads>
struct Carrier {
  static constexpr int kCount = lines * terms / threads;
  static constexpr int kWide = lines > kTileRows ? kWarp : lines;
  static constexpr int kLinesOfTerm = lines / kWide;
  bool along;
  Precision as;
  std::int32_t line[kCount];  // offsets; -1 past the end
  float held[kCount];

  template <bool along>
  static __device__ __forceinline__ int line_of(int e) {
    const int t = static_cast<int>(threadIdx.x);
    return along ? t / terms + e * (threads / terms) : t % kWide + e % kLinesOfTerm * kWide;
  }
  template <bool along>
  static __device__ __forceinline__ int term_of(int e) {
    const int t = static_cast<int>(threadIdx.x);
    return along ? t % terms : t / kWide + e / kLinesOfTerm * (threads / kWide);
  }

  __device__ __forceinline__ Carrier(const Factor& f, int first, int end)
      : along(f.along_terms), as(f.as) {
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      const int n = first + (along ? line_of<true>(e) : line_of<false>(e));
      line[e] = n < end ? offset(f.line, n) : -1;
    }
  }

  /// Into registers: terms from `at` on, each found by find(term).
  template <class Find>
  __device__ __forceinline__ void take(const float* data, int at, const Find& find) {
    if (along)
      take<true>(data, at, find);
    else
      take<false>(data, at, find);
  }
  template <bool along, class Find>
  __device__ __forceinline__ void take(const float* data, int at, const Find& find) {
    Term term{};
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      if (e == 0 || (!along && e % kLinesOfTerm == 0)) term = find(at + term_of<along>(e));
      held[e] = line[e] >= 0 && term.offset >= 0 ? data[line[e] + term.offset] * term.scale : 0.0f;
    }
  }

  /// Puts the terms where T, a tile, takes them, and as it does.
  template <class T, int width>
  __device__ __forceinline__ void put(float (&tile)[terms][width]) {
    if constexpr (T::kPrecision == Precision::tf32) {
      if (as != Precision::tf32) CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
          held[e] = to_tf32(held[e]);
        }
    }
    if (along)
      put<true, T>(tile);
    else
      put<false, T>(tile);
  }
  template <bool along, class T, int width>
  __device__ __forceinline__ void put(float (&tile)[terms][width]) const {
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      const int k = term_of<along>(e);
      tile[k][T::index(k, line_of<along>(e))] = held[e];
    }
  }
};

}  // namespace cudp::inline CUDP_SIMT
