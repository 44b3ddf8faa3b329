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

/// Says of the rows of a table, one after another, which are used: the first max_rows of each unit
/// of privacy. A row's unit is the text in its own cell, byte for byte, so that whether a row is
/// used depends on the rows of its own unit alone (privacy/README.md). The texts are kept in memory
/// and nowhere else.
class FirstRows {
 public:
  /// schema: with a unit; must outlive this.
  FirstRows(const TableSchema& schema, Malformed malformed);

  /// Whether the row, which comes behind all those asked about before, is used. One without a unit,
  /// or malformed, is a fault, or where those count as missing it is not used: to whom it belongs
  /// is not known.
  bool uses(const TableRow& row, TableFaults& faults);

  /// Of the row that was used last: the number that its unit's first used row has among all used
  /// rows, from 0.
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
    std::uint64_t rows = 0;   // used so far
    std::uint32_t first = 0;  // the number of the first of them
  };
  std::unordered_map<std::string, Unit, Hash, std::equal_to<>> units_;  // by their texts
  std::uint32_t used_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace cudp
