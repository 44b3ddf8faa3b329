#pragma once
// Matrix product of two tiles in shared memory, A [rows, terms] and B [terms, columns], by one
// block's threads: in float32 (FloatTile) or by tensor cores (TensorTile). A tile type defines
// which numbers of the product a thread computes, and how. The code that uses a tile is the same
// for all types.
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/products/tile.hpp"

namespace cudp::inline CUDP_SIMT {

/// One thread's part of a matrix product A B. cell: the thread's elements of the block's tile.
/// column: the thread's sums of columns of B. T: type of the tile.
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
  /// Returns the sum of the squares of this thread's elements of the tile and, if with_columns, of
  /// its column sums.
  __device__ __forceinline__ float square(bool with_columns) const {
    float sum = 0.0f;
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      if (with_columns) sum += column[n] * column[n];
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) { sum += cell[m][n] * cell[m][n]; }
    }
    return sum;
  }
};

/// One thread's part of a sum of gradients, as integers that count multiples of the sum's grid (a
/// power of two, to whose multiples each number is rounded before it is added). cell: sums for the
/// thread's weights in the block's tile. column: sums of columns, the gradients of biases.
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

/// Tile of a matrix product in float32. A block computes kRows x kColumns elements of the product
/// (`rows` x `columns`), a thread kRowsThread x 4 of them. kTerms (`terms`) products at a time are
/// added to each element, with fused multiply-adds.
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
  // Number of blocks that must fit on a multiprocessor, which limits registers (__launch_bounds__).
  // kNormBlocks and kSumBlocks are for the kernels of a gradient's norm and sum.
  static constexpr int kBlocks = terms == kThinTerms ? 4 : 512 / kThreads;
  static constexpr int kNormBlocks = kBlocks;
  static constexpr int kSumBlocks = kThreads == 128 ? 3 : 6;
  static constexpr int kPad = 4;  // keeps rows 16-byte aligned and spreads them over the banks

  alignas(16) float a[2][kTerms][kRows + kPad];
  alignas(16) float b[2][kTerms][kColumns + kPad];

  // Row and column in the tile of the thread's element cell[m][n]. A thread's rows are groups of
  // four, kRows / 2 apart. Neighbouring threads have neighbouring groups.
  static __device__ __forceinline__ int row(int m) {
    return m / 4 * (kRows / 2) + static_cast<int>(threadIdx.x) % kRowGroups * 4 + m % 4;
  }
  static __device__ __forceinline__ int column(int n) {
    return static_cast<int>(threadIdx.x) / kRowGroups * kColumnsThread + n;
  }

  /// Returns the position, in the tile's arrays a[half][k] and b[half][k], of row (of a) or column
  /// (of b) number `line`. Here it is `line` itself; in a TensorTile it is shifted, depending on k.
  static __device__ __forceinline__ int index(int, int line) { return line; }

  /// Multiplies the parts of matrices a and b that are in buffer `half` (0 or 1) and adds the
  /// products to `sums`. with_columns: also adds up the columns of b, which only the threads with
  /// holds_bias() use.
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
  /// Multiplies the parts of matrices a and b that are in buffer `half` (0 or 1), rounds every
  /// product to an integer, and adds the integers to `sums`. with_columns: also adds up the columns
  /// of b.
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

/// Adds the column sums of b to `columns`. b is this lane's part of an 8 x 8 matrix in the layout
/// that mma_tf32 (a tensor-core product) reads. The sums are computed as a product of a matrix of
/// ones with b.
__device__ __forceinline__ void add_columns(const float (&b)[2], float* columns) {
  constexpr float kOnes[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  float other_rows[2] = {0.0f, 0.0f};
  mma_tf32(columns, other_rows, kOnes, b);
}

/// Division of a block's tile of a matrix product among warps that use tensor cores. The block
/// computes rows x columns elements, each warp warp_rows x warp_columns of them.
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
  // Row and column in the tile of the thread's element cell[m][n], in the layout of mma_tf32.
  static __device__ __forceinline__ int row(int m) { return warp_row() + 8 * m + lane() / 4; }
  static __device__ __forceinline__ int column(int n) {
    return warp_column() + n / 2 * 8 + lane() % 4 * 2 + n % 2;
  }
};

template <int columns, int terms>
using TensorWarps =
    WarpTile<terms == kTallTerms ? kTallRows : kTileRows, columns,
             (terms == kTallTerms ? kTallRows : kTileRows) / 2, (columns < 32 ? columns : 32)>;

/// Tile of a matrix product computed by tensor cores; it has the same members as FloatTile. A warp
/// computes half of the tile's rows and at most 32 columns. 8 products at a time are added to each
/// element, in order. This order is the same for every position of an element in the tile, and of
/// the tile in the matrix. So an example's result depends neither on the micro-batch nor on the
/// other examples. If terms = kTallTerms, the tile has twice as many rows.
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
  // Padding of a and b in shared memory, with which each access of a warp uses every bank once.
  // kPad: number of floats after a row, a[half][k] or b[half][k], so that rows of consecutive k are
  // 8 or 24 banks apart. kPush: number of floats by which the numbers of each group of four rows
  // are shifted compared with the previous group (index()). Lane 4 g + t reads element (t, g) of a
  // fragment. A lane writes one or more lines (rows of matrix A, columns of B) for all k, or all
  // lines for one k.
  static constexpr int kPad = 8;
  static constexpr int kPush = 32 / kTerms;
  static_assert((kTerms / 4 - 1) * kPush < kPad);

  float a[2][kTerms][kRows + kPad];
  float b[2][kTerms][kColumns + kPad];

  static __device__ __forceinline__ int index(int k, int line) { return line + k / 4 * kPush; }

  /// Multiplies the parts of matrices a and b that are in buffer `half` (0 or 1) and adds the
  /// products to `sums`. with_columns: also adds up the columns of b, but only in blocks with
  /// is_first.
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

/// Returns the index in the whole product of the first row of this block's tile. (first_column()
/// returns that of the first column.)
template <class T>
__device__ __forceinline__ int first_row() {
  return static_cast<int>(blockIdx.x) * T::kRows;
}
template <class T>
__device__ __forceinline__ int first_column() {
  return static_cast<int>(blockIdx.y) * T::kColumns;
}

/// Offset in memory and factor of a matrix's numbers at one index t of a product's summed
/// dimension. The numbers are column t of the left matrix or row t of the right one. They are
/// multiplied by `scale`. If offset < 0, the numbers are 0.
struct Term {
  std::int32_t offset;
  float scale;
};

/// Copies this thread's share (kCount numbers) of one matrix's tile from global to shared memory:
/// take() loads it into registers, put() stores it. A line is a row of the left matrix, or a column
/// of the right one. The thread's e-th number is in line line_of(e), at index term_of(e) of the
/// summed dimension. Threads copy in the order of memory: along the summed dimension if `along`,
/// otherwise across lines. lines, terms: size of the tile. threads: number of threads of the block.
template <int lines, int terms, int threads>
struct Carrier {
  static constexpr int kCount = lines * terms / threads;
  static constexpr int kWide = lines > kTileRows ? kWarp : lines;
  static constexpr int kLinesOfTerm = lines / kWide;
  bool along;
  Precision as;
  std::int32_t line[kCount];  // offset of each line in memory; -1 past the last line
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

  /// Loads the thread's numbers from global memory into registers, for the part of the tile that
  /// starts at index `at` of the summed dimension. find(k) returns the Term (offset and factor) of
  /// index k. data: the matrix in global memory. Find: type of the function find().
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

  /// Stores the numbers that take() loaded in shared memory: in tile [terms][width], in the layout
  /// and precision of the tile type T.
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
