#pragma once
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/column_facts.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/table.hpp"

namespace cudp {

/// Facts about the cells of each column that the schema does not state in full, [columns]. Not
/// private. Throws what for_each_row throws.
std::vector<ColumnFacts> facts_of(const TableSchema& schema, ByteReader& reader);

/// Gives a column of which nothing is known a kind that its cells allow: a number, a date or a
/// category. It may lack bounds or categories still.
void choose_kind(Column& column, const ColumnFacts& facts);

/// Fills in what the schema leaves open (kinds, bounds, categories, classes) from the rows. Not
/// private by itself: whoever calls this must say so in the certificate. Throws InputError where no
/// choice makes sense, e.g. more than 1,000 categories.
TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader);

}  // namespace cudp
