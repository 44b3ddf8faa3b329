#pragma once
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/column_facts.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/table.hpp"

namespace cudp {

/// Returns statistics of the cells of each column (minimum, distinct texts, ...), one entry per
/// column of the schema. The entry of a column that the schema describes completely is empty. The
/// statistics are exact, so they are not differentially private. Throws InputError if the file is
/// not a table with the schema's columns, or if it has no row. reader: the table's file.
std::vector<ColumnFacts> facts_of(const TableSchema& schema, ByteReader& reader);

/// Sets the kind of a column, if the schema states none, to one that fits its cells: numeric, date
/// or categorical. Its bounds or categories may still be missing then. facts: statistics of the
/// column's cells, from facts_of().
void choose_kind(Column& column, const ColumnFacts& facts);

/// Returns the schema with missing kinds, bounds, categories and classes taken from the table's
/// rows. The result is not differentially private: the caller must state this in the run's privacy
/// certificate. Throws InputError if the rows allow no usable schema, e.g. if a column has more
/// than 1,000 categories. reader: the table's file.
TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader);

}  // namespace cudp
