#pragma once
// Product of two tiles by tensor cores in fp16, with sums in float32.
#include "kernels/common/half_core.cuh"
#include "kernels/products/tile.cuh"

namespace cudp::inline CUDP_SIMT {

/// Tile of a matrix product in fp16; it has the same members as TensorTile. A block computes 64 x
/// 64 elements, a warp 32 x 32 of them. 16 products at a time are added to each element, in order.
/// An example's result depends neither on the micro-batch nor on the other examples.
struct HalfTile : WarpTile<64, 64, 32, 32> {
  static constexpr Precision kPrecision = Precision::tf32;
  static constexpr int kTerms = 16;
  static constexpr int kNormBlocks = 4;
  /// Length of a row in shared memory, the numbers of one index of the summed dimension. Eight rows
  /// that ldmatrix reads at once start in different banks.
  static constexpr int kPitch = 72;

  alignas(16) std::uint16_t a[2][kTerms][kPitch];
  alignas(16) std::uint16_t b[2][kTerms][kPitch];

  /// Loads the right operands of the products of the warp's columns: y[n] for the 16 columns from
  /// 16 n on. b: a buffer of the tile.
  static __device__ __forceinline__ void load_columns(const std::uint16_t (&b)[kTerms][kPitch],
                                                      u32 (&y)[2][4]) {
    // Lane 8 i + r passes the address of row r of the i-th matrix of 8 x 8 numbers.
    CUDP_UNROLL for (int n = 0; n < 2; ++n) {
      ldmatrix_x4_trans(
          y[n], &b[lane() / 8 % 2 * 8 + lane() % 8][warp_column() + 16 * n + lane() / 16 * 8]);
    }
  }
  /// Returns the right operand for columns 8 n .. 8 n + 7 of the warp.
  struct Column {
    u32 word[2];
  };
  static __device__ __forceinline__ Column column_of(const u32 (&y)[2][4], int n) {
    const int first = n % 2 * 2;
    return {{y[n / 2][first], y[n / 2][first + 1]}};
  }
  /// Adds a product to the sums of rows 16 m .. 16 m + 15 and columns 8 n .. 8 n + 7 of the warp.
  static __device__ __forceinline__ void add(Sums<HalfTile>& sums, int m, int n, const u32 (&x)[4],
                                             const Column& y) {
    const int row = 2 * m;
    const int column = 2 * n;
    float* const top = &sums.cell[row][column];
    float* const bottom = &sums.cell[row + 1][column];
    float d[4] = {top[0], top[1], bottom[0], bottom[1]};
    multiply_add(d, x, y.word);
    top[0] = d[0], top[1] = d[1], bottom[0] = d[2], bottom[1] = d[3];
  }

  /// Multiplies the parts of matrices a and b that are in buffer `half` (0 or 1) and adds the
  /// products to `sums`. with_columns: also adds up the columns of b, but only in blocks with
  /// is_first.
  template <bool with_columns>
  __device__ __forceinline__ void multiply(int half, Sums<HalfTile>& sums, bool is_first) const {
    const int first = lane() / 8 % 2 * 8;
    const int second = lane() / 16 * 8;
    u32 x[2][4], y[2][4];
    CUDP_UNROLL for (int m = 0; m < 2; ++m) {
      ldmatrix_x4_trans(x[m], &a[half][second + lane() % 8][warp_row() + 16 * m + first]);
    }
    load_columns(b[half], y);
    CUDP_UNROLL for (int n = 0; n < 4; ++n) {
      const Column column = column_of(y, n);
      CUDP_UNROLL for (int m = 0; m < 2; ++m) { add(sums, m, n, x[m], column); }
      if (with_columns && is_first && warp_row() == 0) {
        constexpr u32 kOnes[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
        const int i = 2 * n;
        float d[4] = {sums.column[i], sums.column[i + 1], 0.0f, 0.0f};
        multiply_add(d, kOnes, column.word);
        sums.column[i] = d[0], sums.column[i + 1] = d[1];
      }
    }
  }
};

/// Returns v. The compiler does not know that, so it computes what depends on the result where it
/// is needed. It would otherwise compute it before a loop and keep it in registers.
__device__ __forceinline__ int late(int v) {
#ifdef __CUDACC__
  asm volatile("" : "+r"(v));
#endif
  return v;
}

/// Multiplies all numbers in `sums` by `factor`.
__device__ __forceinline__ void scale(Sums<HalfTile>& sums, float factor) {
  CUDP_UNROLL for (int n = 0; n < HalfTile::kColumnsThread; ++n) {
    sums.column[n] *= factor;
    CUDP_UNROLL for (int m = 0; m < HalfTile::kRowsThread; ++m) { sums.cell[m][n] *= factor; }
  }
}

/// Copies this thread's share of one matrix's part of a HalfTile from global to shared memory:
/// take() loads numbers into registers, put() multiplies them by a power of two, rounds them to
/// fp16 and stores them. A thread has four neighbouring lines at each of kCount terms; neighbouring
/// lines are neighbours in memory.
struct HalfCarrier {
  static constexpr int kGroups = HalfTile::kColumns / 4;
  static constexpr int kStep = HalfTile::kThreads / kGroups;
  static constexpr int kCount = HalfTile::kTerms / kStep;
  int line;       ///< first of the thread's four lines
  int end;        ///< number of lines of the matrix
  bool in_fours;  ///< whether the four are a multiple of 16 bytes from the start of memory
  float held[kCount][4];

  __device__ __forceinline__ HalfCarrier(int first, int lines, bool fours)
      : line(first + static_cast<int>(threadIdx.x) % kGroups * 4), end(lines), in_fours(fours) {}

  /// Loads the numbers of the terms from index `at` on. find(k) returns where those of index k are;
  /// their scale is not used. data: the matrix in global memory.
  template <class Find>
  __device__ __forceinline__ void take(const float* data, int at, const Find& find) {
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      const int offset = find(at + static_cast<int>(threadIdx.x) / kGroups + e * kStep).offset;
      const float* const from = data + offset + line;
      if (in_fours) {
        const Four four = offset >= 0 && line < end ? load_four(from) : Four{};
        CUDP_UNROLL for (int i = 0; i < 4; ++i) { held[e][i] = four.v[i]; }
      } else {
        CUDP_UNROLL for (int i = 0; i < 4; ++i) {
          held[e][i] = offset >= 0 && line + i < end ? from[i] : 0.0f;
        }
      }
    }
  }

  /// Stores the numbers that take() loaded, times `scale`, in `tile`.
  __device__ __forceinline__ void put(std::uint16_t (&tile)[HalfTile::kTerms][HalfTile::kPitch],
                                      float scale) const {
    CUDP_UNROLL for (int e = 0; e < kCount; ++e) {
      const int term = static_cast<int>(threadIdx.x) / kGroups + e * kStep;
      const int first = static_cast<int>(threadIdx.x) % kGroups * 4;
      u32* const to = reinterpret_cast<u32*>(&tile[term][first]);
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int pair = 2 * i;
        to[i] = halves(held[e][pair] * scale, held[e][pair + 1] * scale);
      }
    }
  }
};

}  // namespace cudp::inline CUDP_SIMT
