#pragma once

namespace cudp {

/// Treatment of a cell of a table that cannot be read as its column's kind, and of a row that has a
/// wrong number of cells.
enum class Malformed {
  refuse,  ///< end with an error
  missing  ///< treat the cell, or each cell of the row, as missing
};

}  // namespace cudp
