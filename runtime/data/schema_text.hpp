#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// The schema as TOML: parse_schema gives an equal one back. It need not be complete. Throws Error
/// where a text in it is not UTF-8, which TOML cannot hold.
std::string schema_toml(const TableSchema& schema);

/// All of it but the columns.
std::string schema_head_toml(const TableSchema& schema);

/// One column as TOML, on a line of its own: {name = "age", kind = "numeric", ...}.
std::string column_toml(const Column& column);

/// The names of what a row of a complete schema is encoded as, in order, [feature_count(schema)]:
/// "age"; of its intervals "age<30", "30<=age<65", "age>=65"; "job=clerk", and "job is missing"
/// where missing values have a column.
std::vector<std::string> feature_names(const TableSchema& schema);

/// The text as a TOML string, quotes included. Throws Error where it is not UTF-8.
std::string toml_text(std::string_view text);

}  // namespace cudp
