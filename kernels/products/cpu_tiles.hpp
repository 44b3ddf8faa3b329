#pragma once
// Division of a product's output on the CPU into tiles, whose sums stay in SIMD registers. Included
// by files that are compiled once per SIMD level (vec.hpp).
#include <cstdint>

#include "kernels/common/vec.hpp"

namespace cudp::CUDP_SIMD {

/// Shape of a tile of the output: up to max_rows rows by `vectors` SIMD vectors of columns.
struct TileShape {
  int vectors;
  int max_rows;
};

/// Calls block.operator()<vectors, max_rows>(column) for blocks of columns, which together have all
/// columns from `column` on. shapes: shapes of their tiles, in descending width. The last block may
/// reach beyond `columns`, by less than the width of the last shape.
template <const auto& shapes, int i = 0, class Block>
void for_each_column_block(int columns, const Block& block, int column = 0) {
  constexpr TileShape shape = shapes[i];
  constexpr int width = shape.vectors * kLanes;
  for (; columns - column >= width; column += width)
    block.template operator()<shape.vectors, shape.max_rows>(column);
  if constexpr (i + 1 < static_cast<int>(sizeof shapes / sizeof shapes[0]))
    if (column < columns) for_each_column_block<shapes, i + 1>(columns, block, column);
}

/// Table of the functions that compute a tile: of_rows[R - 1] for tiles of R rows, which is what
/// TileOf's operator()<R>() returns.
template <class TileOf, int max_rows>
struct TileTable {
  decltype(TileOf{}.template operator()<1>()) of_rows[max_rows] = {};

  template <int R>
  constexpr void fill() {
    if constexpr (R <= max_rows) {
      of_rows[R - 1] = TileOf{}.template operator()<R>();
      fill<R + 1>();
    }
  }
  constexpr TileTable() { fill<1>(); }
};

/// Divides rows into tiles of at most max_rows rows, as evenly as possible: with 12 at the most, 14
/// rows are 7 + 7, not 12 + 2. Calls body(tile, first) for each: `tile` is the function for its
/// number of rows R, which TileOf{}.operator()<R>() returns; `first` is its first row.
template <int max_rows, class TileOf, class Body>
void for_each_tile(int rows, TileOf, const Body& body) {
  static constexpr TileTable<TileOf, max_rows> kTable;
  const int tiles = (rows + max_rows - 1) / max_rows;
  for (int i = 0; i < tiles; ++i) {
    const int first = static_cast<int>(static_cast<std::int64_t>(rows) * i / tiles);
    const int last = static_cast<int>(static_cast<std::int64_t>(rows) * (i + 1) / tiles);
    body(kTable.of_rows[last - first - 1], first);
  }
}

}  // namespace cudp::CUDP_SIMD
