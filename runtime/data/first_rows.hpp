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
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> rows_;  // by unit
};

}  // namespace cudp
