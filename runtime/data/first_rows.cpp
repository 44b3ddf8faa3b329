#include "runtime/data/first_rows.hpp"

namespace cudp {

FirstRows::FirstRows(const TableSchema& schema, Malformed malformed)
    : schema_(schema), column_(unit_column(schema).value()), malformed_(malformed) {}

bool FirstRows::uses(const TableRow& row, TableFaults& faults) {
  const std::string_view unit = trimmed(row.cells[column_]);  // a cell in quotes keeps its blanks
  if (row.malformed || is_missing(schema_, schema_.columns[column_], unit)) {
    if (malformed_ == Malformed::refuse)
      faults.add(row.line, schema_.columns[column_].name, "the text of a unit", "a missing value");
    return false;
  }
  auto found = units_.find(unit);
  if (found == units_.end())
    found = units_.emplace(std::string(unit), Unit{.rows = 0, .first = used_}).first;
  if (found->second.rows == schema_.unit->max_rows) return false;
  ++found->second.rows;
  first_ = found->second.first;
  ++used_;
  return true;
}

}  // namespace cudp
