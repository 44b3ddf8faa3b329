#pragma once
// Factors of a product, whose numbers are found through index tables, and the tiles that blocks
// multiply.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Mapping from an index n to an offset. n / period is the example, `outer` floats apart (period 0:
/// there is one example). The remainder is looked up in `table`, or is multiplied by `inner` if
/// that is null.
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

/// Returns the offset along an axis without examples, in fewer instructions than offset().
CUDP_HD std::int32_t offset_within(const Axis& a, std::int32_t n) {
  return a.table != nullptr ? a.table[n] : n * a.inner;
}

/// A matrix in memory with two axes. `along_terms`: neighbours in memory are neighbouring terms,
/// otherwise neighbouring rows (columns). Loads follow the order in memory.
struct Factor {
  const float* data;
  Axis line;  ///< rows of the left factor, columns of the right one
  Axis term;
  bool along_terms;
  Precision as = Precision::fp32;  ///< tf32: the numbers are already rounded in memory
};

inline void validate(const Factor& f) {
  expect(f.data != nullptr, "product: expected data");
  expect(f.line.period >= 0 && f.term.period >= 0, "product: expected periods >= 0");
}

/// Size of the tile of a block: kTileRows x tile_columns(columns).
inline constexpr int kTileRows = 64;
inline int tile_columns(int columns) { return columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
/// Number of threads per block: 64 for tiles of 16 and 32 columns, 128 for 64.
constexpr unsigned tile_threads(int columns) { return columns <= 32 ? 64 : 128; }

inline constexpr int kThinColumns = 16;
inline constexpr int kThinTerms = 32;

/// Tall tiles. With tensor cores, a product of more than 16 columns that is not thin uses taller
/// tiles of fewer terms, which use each loaded number more often.
inline constexpr int kTallRows = 128;
inline constexpr int kTallTerms = 8;

}  // namespace cudp
