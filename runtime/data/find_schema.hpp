#pragma once
#include <optional>
#include <string>

#include "runtime/data/request.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// A schema that a user has for a table, as it is written.
struct FoundSchema {
  TableSchema schema;
  std::string source;  ///< the file, or the name of a shipped one
};

/// The schema for request.dataset, a table given by path: request.schema, a shipped one by its name
/// or a file, else the file beside the table; empty where there is neither. Throws InputError.
std::optional<FoundSchema> find_schema(const DataRequest& request);

}  // namespace cudp
