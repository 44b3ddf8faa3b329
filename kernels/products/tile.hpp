#pragma once
// Matrices of a product, whose elements are found through index tables, and sizes of the tiles that
// blocks compute.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Mapping from an index n along one dimension of a matrix to an offset in memory [floats]. n /
/// period is the example, `outer` floats apart (period 0: there is one example). The remainder is
/// looked up in `table`, or is multiplied by `inner` if that is null.
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

/// Returns the offset of index n along a dimension without examples, in fewer instructions than
/// offset().
CUDP_HD std::int32_t offset_within(const Axis& a, std::int32_t n) {
  return a.table != nullptr ? a.table[n] : n * a.inner;
}

/// One matrix of a product, in memory. `line` indexes its rows (left matrix) or columns (right
/// matrix); `term` indexes the summed dimension. along_terms: whether neighbours in memory are
/// neighbours along `term`; otherwise they are neighbours along `line`. Loads follow the order in
/// memory.
struct Factor {
  const float* data;
  Axis line;  ///< rows of the left matrix, columns of the right one
  Axis term;
  bool along_terms;
  Precision as = Precision::fp32;  ///< tf32: the numbers are already rounded in memory
};

inline void validate(const Factor& f) {
  expect(f.data != nullptr, "product: expected data");
  expect(f.line.period >= 0 && f.term.period >= 0, "product: expected periods >= 0");
}

/// Size of the tile of a product that a block computes: kTileRows x tile_columns(columns).
inline constexpr int kTileRows = 64;
inline int tile_columns(int columns) { return columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
/// Number of threads per block that computes a tile: 64 for tiles of 16 and 32 columns, 128 for 64.
constexpr unsigned tile_threads(int columns) { return columns <= 32 ? 64 : 128; }

inline constexpr int kThinColumns = 16;
inline constexpr int kThinTerms = 32;

/// Rows of a tall tile, and the number of summed indices per step. With tensor cores, a product of
/// more than 16 columns that is not thin uses tall tiles, which use each loaded number more often.
inline constexpr int kTallRows = 128;
inline constexpr int kTallTerms = 8;

}  // namespace cudp
