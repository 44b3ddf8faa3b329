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

/// Decides for the rows of a table, in order, which are used: the first max_rows of each unit of
/// privacy. The unit of a row is the text in the row's own unit cell, byte for byte, so whether a
/// row is used depends on the rows of its unit only (privacy/README.md). The texts are kept in
/// memory and nowhere else.
class FirstRows {
 public:
  /// schema: must state a unit, and outlive this object.
  FirstRows(const TableSchema& schema, Malformed malformed);

  /// Returns whether the row is used. Requires that rows come in the order of the file. A row that
  /// is malformed or has no unit is a fault; with Malformed::missing it is unused, because its unit
  /// is unknown.
  bool uses(const TableRow& row, TableFaults& faults);

  /// Number, from 0 among all used rows, of the first used row in the unit of the row used last.
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
  struct Unit {
    std::uint64_t rows = 0;   // number of used rows so far
    std::uint32_t first = 0;  // number of the first used row
  };
  std::unordered_map<std::string, Unit, Hash, std::equal_to<>> units_;  // keys: texts of units
  std::uint32_t used_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace cudp
