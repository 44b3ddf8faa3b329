#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/config/malformed.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/table.hpp"

namespace cudp {

/// Decides, row by row in the order of the file, which rows of a table are training examples: the
/// first max_rows rows of each unit of privacy (e.g. of each person). Rows belong to the same unit
/// if they have the same text in the column that identifies the unit, compared byte for byte,
/// without blanks and tabs at its ends. The decision about a row depends only on rows of the same
/// unit; the privacy proof requires this.
class FirstRows {
 public:
  /// Makes an object that has seen no rows. Requires that `schema` states a unit of privacy, and
  /// that it outlives this object. malformed: whether a row that cannot be read is an error
  /// (refuse) or is not used (missing).
  FirstRows(const TableSchema& schema, Malformed malformed);

  /// Returns whether the row is a training example. Rows must be passed in the order of the file.
  /// If the row is malformed or its unit column is empty, its unit is unknown, and the row is not a
  /// training example; with Malformed::refuse, an error is also added to `faults`.
  bool uses(const TableRow& row, TableFaults& faults);

  /// Returns the index of the first row of a unit of privacy, among all rows that are training
  /// examples. The unit is that of the last row for which uses() returned true.
  std::uint32_t first() const { return first_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  const TableSchema& schema_;
  std::size_t column_;
  Malformed malformed_;
  /// A unit of privacy of which at least one row is used.
  struct Unit {
    std::uint64_t rows = 0;   // number of used rows so far
    std::uint32_t first = 0;  // number of the first used row
  };
  std::unordered_map<std::string, Unit, Hash, std::equal_to<>> units_;  // by the text of the unit
  std::uint32_t used_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace cudp
