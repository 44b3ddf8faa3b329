#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Returns whether a column with this name probably identifies rows: id, visit_id, uuid. It guesses
/// from the name alone.
bool names_rows(std::string_view name);

/// Returns whether a column with this name probably identifies persons: patient_id, MRN, user,
/// CustomerNo; not patient_age or visit_id. It guesses from the name alone. A person may have
/// several rows.
bool names_persons(std::string_view name);

/// Returns the name of the first column whose name suggests that it identifies persons, and that is
/// neither a feature nor the column to predict. Returns "" if there is none.
std::string column_of_persons(const TableSchema& schema);

std::vector<std::string> names_of(const std::vector<Column>& columns);

/// Returns a hint for an error message about an unknown column: "; the nearest is 'age'", or "" if
/// no name is similar.
std::string near_column(std::string_view name, const std::vector<std::string>& columns);

/// Returns a text for messages that shows the two schema keys with which a user declares the unit
/// of privacy, e.g. `unit = "patient_id" and max_rows`. The column name in it is a guess from the
/// names of the schema's columns.
std::string unit_keys(const TableSchema& schema);

}  // namespace cudp
