#pragma once
// Matrices of a product, whose elements are found through index tables, and sizes of the tiles that
// blocks compute.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Maps an index n along one dimension of a matrix to an offset in memory [floats]. If the
/// dimension runs over several examples, each has `period` indices, and examples are `outer` floats
/// apart; period 0 means that there is one example. Within an example, the offset of index i is
/// table[i], or i inner if table is null.
struct Axis {
  const std::int32_t* table = nullptr;
  std::int32_t period = 0;
  std::int32_t outer = 0;
  std::int32_t inner = 1;
};

CUDP_HD std::int32_t offset(const Axis& a, std::int32_t n) {
  std::int32_t example = 0;
  if (a.period != 0) {
    example = n / a.period;
    n -= example * a.period;
  }
  return example * a.outer + (a.table != nullptr ? a.table[n] : n * a.inner);
}

/// Returns the offset of index n along a dimension of a single example (period 0), in fewer
/// instructions than offset().
CUDP_HD std::int32_t offset_within(const Axis& a, std::int32_t n) {
  return a.table != nullptr ? a.table[n] : n * a.inner;
}

/// One of the two matrices of a product, in memory. `line` maps the index of a row (of the left
/// matrix) or of a column (of the right one) to an offset, `term` the index in the summed
/// dimension. along_terms: whether neighbours in memory are neighbours along the summed dimension;
/// otherwise they are in neighbouring rows (columns). Kernels load numbers in the order of memory.
struct Factor {
  const float* data;
  Axis line;  ///< rows of the left matrix, columns of the right one
  Axis term;
  bool along_terms;
  Precision as = Precision::fp32;  ///< tf32: the numbers in memory are already rounded to TF32
};

inline void validate(const Factor& f) {
  expect(f.data != nullptr, "product: expected data");
  expect(f.line.period >= 0 && f.term.period >= 0, "product: expected periods >= 0");
}

/// Number of rows of the tile of a product that one block computes; tile_columns(columns) is its
/// number of columns.
inline constexpr int kTileRows = 64;
inline int tile_columns(int columns) { return columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
/// Returns the number of threads per block. columns: number of columns of the block's tile, 16, 32
/// or 64.
constexpr unsigned tile_threads(int columns) { return columns <= 32 ? 64 : 128; }

/// Number of columns of a block's tile in a thin product, one with long sums but few elements
/// (is_thin()).
inline constexpr int kThinColumns = 16;
/// Number of summands that a step adds to each element of a tile in a thin product.
inline constexpr int kThinTerms = 32;

/// Number of rows of a tall tile (kTallRows), and number of products per step that are added to
/// each of its elements (kTallTerms). With tensor cores, products of more than 16 columns use tall
/// tiles, because a tall tile uses each loaded number more often. The exception is thin products
/// (is_thin()), whose results are too small for large tiles.
inline constexpr int kTallRows = 128;
inline constexpr int kTallTerms = 8;

}  // namespace cudp
