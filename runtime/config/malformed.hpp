#pragma once

namespace cudp {

/// Treatment of a cell that cannot be read as its column's kind, and of a row with a wrong number
/// of cells.
enum class Malformed {
  refuse,  ///< an error
  missing  ///< treat the cell, or each cell of the row, as missing
};

}  // namespace cudp
