#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Formats a schema, which may be incomplete, as TOML that parse_schema reads back unchanged.
/// Throws Error if a text in it is not UTF-8, which TOML requires.
std::string schema_toml(const TableSchema& schema);

/// Returns the schema as TOML without the list of its columns.
std::string schema_head_toml(const TableSchema& schema);

/// Formats one column as a TOML table: {name = "age", kind = "numeric", ...}.
std::string column_toml(const Column& column);

/// Returns the names of the features of a row, in order, [feature_count(schema)]: "age" for a
/// numeric column, "age<30", "30<=age<65", "age>=65" for its intervals, "job=clerk" for a category,
/// and "job is missing" if missing values have a feature. Requires a complete schema.
std::vector<std::string> feature_names(const TableSchema& schema);

/// Formats a text as a TOML string with quotes. Throws Error if it is not UTF-8.
std::string toml_text(std::string_view text);

}  // namespace cudp
