#pragma once
// The factors of a product, as index tables find their numbers, and the tiles that blocks multiply.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// The place of index n: n / period chooses an example, `outer` elements apart (period 0: there is
/// one), and what remains goes through `table`, or is `inner` elements apart where that is null.
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

/// The place along an axis without examples, in fewer instructions.
CUDP_HD std::int32_t offset_within(const Axis& a, std::int32_t n) {
  return a.table != nullptr ? a.table[n] : n * a.inner;
}

/// A matrix in memory, seen along two axes. `along_terms`: neighbours in memory are neighbouring
/// terms, else neighbouring rows (columns); loads follow it.
struct Factor {
  const float* data;
  Axis line;  ///< rows of the left factor, columns of the right one
  Axis term;
  bool along_terms;
  Precision as = Precision::fp32;  ///< tf32: the numbers have been rounded where they were stored
};

inline void validate(const Factor& f) {
  expect(f.data != nullptr, "product: expected data");
  expect(f.line.period >= 0 && f.term.period >= 0, "product: expected periods >= 0");
}

/// The tile of a block: kTileRows x kTileColumns<which> numbers.
inline constexpr int kTileRows = 64;
inline int tile_columns(int columns) { return columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
/// Threads of a block: 64 for tiles of 16 and 32 columns, 128 for 64.
constexpr unsigned tile_threads(int columns) { return columns <= 32 ? 64 : 128; }

inline constexpr int kThinColumns = 16;
inline constexpr int kThinTerms = 32;

/// With tensor cores a product of more than 16 columns that is not thin takes taller tiles, in
/// which every number that is moved is used more, of fewer terms.
inline constexpr int kTallRows = 128;
inline constexpr int kTallTerms = 8;

}  // namespace cudp
