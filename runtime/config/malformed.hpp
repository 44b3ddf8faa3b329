#pragma once

namespace cudp {

/// What to do with a cell of a table that cannot be read as its column's kind, and with a row that
/// has a wrong number of cells.
enum class Malformed {
  refuse,  ///< end with an error
  missing  ///< treat the cell, or each cell of the row, as missing
};

}  // namespace cudp
