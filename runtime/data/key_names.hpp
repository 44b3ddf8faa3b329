#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Whether a column of this name says which row it is: id, visit_id, uuid. A guess, from the name
/// alone, as are the others here.
bool names_rows(std::string_view name);

/// Whether a column of this name says whose a row is: patient_id, MRN, user, CustomerNo; not
/// patient_age or visit_id. Such a person may have several rows.
bool names_persons(std::string_view name);

/// The first column whose name says whose a row is, and that no model sees or predicts; empty if
/// there is none.
std::string column_of_persons(const TableSchema& schema);

/// The names of all columns, in order.
std::vector<std::string> names_of(const std::vector<Column>& columns);

/// The end of a refusal of a column's name: "; the nearest is 'age'", or nothing where none is
/// near.
std::string near_column(std::string_view name, const std::vector<std::string>& columns);

/// The two keys of a schema that state the unit of privacy, for a message: unit = "patient_id" and
/// max_rows.
std::string unit_keys(const TableSchema& schema);

}  // namespace cudp
