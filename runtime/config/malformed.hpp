#pragma once

namespace cudp {

/// The fate of a cell that cannot be read as its column's kind, and of a row with a wrong number
/// of cells.
enum class Malformed {
  refuse,  ///< the table is refused
  missing  ///< the cell, or each of the row's, counts as missing
};

}  // namespace cudp
