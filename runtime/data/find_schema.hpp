#pragma once
#include <optional>
#include <string>

#include "runtime/data/request.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// Schema of a table as its author wrote it.
struct FoundSchema {
  TableSchema schema;
  std::string source;  ///< path of the file, or the name of a shipped schema
};

/// Finds the schema of request.dataset, a table given by path: request.schema (a file, or the name
/// of a shipped schema), or else the file next to the table; empty if there is neither. Throws
/// InputError.
std::optional<FoundSchema> find_schema(const DataRequest& request);

}  // namespace cudp
