#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Formats a schema as TOML; parse_schema returns an equal one. The schema may be incomplete.
/// Throws Error if a text in it is not UTF-8, which TOML requires.
std::string schema_toml(const TableSchema& schema);

/// Formats everything but the columns.
std::string schema_head_toml(const TableSchema& schema);

/// Formats one column as a TOML table: {name = "age", kind = "numeric", ...}.
std::string column_toml(const Column& column);

/// Returns the names of the features of a row of a complete schema, in order,
/// [feature_count(schema)]: "age"; for its intervals "age<30", "30<=age<65", "age>=65";
/// "job=clerk", and "job is missing" if missing values have a column.
std::vector<std::string> feature_names(const TableSchema& schema);

/// Formats a text as a TOML string with quotes. Throws Error if it is not UTF-8.
std::string toml_text(std::string_view text);

}  // namespace cudp
