#pragma once
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/column_facts.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/table.hpp"

namespace cudp {

/// Returns facts about the cells of each column, one entry for each column of the schema. Entries
/// of columns that the schema describes completely are empty. The facts have no noise: they are
/// exact properties of the rows. Throws as for_each_row does.
std::vector<ColumnFacts> facts_of(const TableSchema& schema, ByteReader& reader);

/// Gives a column of unknown kind a kind that fits its cells: numeric, date or categorical. Bounds
/// or categories may still be missing.
void choose_kind(Column& column, const ColumnFacts& facts);

/// Fills in what the schema leaves open (kinds, bounds, categories, classes) from the rows. The
/// result is not private: the caller must state this in the certificate. Throws InputError if no
/// choice makes sense, e.g. with more than 1,000 categories.
TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader);

}  // namespace cudp
