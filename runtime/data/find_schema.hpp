#pragma once
#include <optional>
#include <string>

#include "runtime/data/request.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// Schema of a table as its author wrote it, perhaps incomplete.
struct FoundSchema {
  TableSchema schema;
  std::string source;  ///< path of the file, or the name of a shipped schema
};

/// Returns the schema of the table request.dataset: that of request.schema (a file, or the name of
/// a shipped schema) if this is set, otherwise that of the file PATH.schema.toml next to the table.
/// Returns nullopt if there is neither. Throws InputError.
std::optional<FoundSchema> find_schema(const DataRequest& request);

}  // namespace cudp
