#pragma once
#include <optional>
#include <string>

#include "runtime/data/request.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// Schema of a table as its author wrote it (perhaps incomplete), and where it was found.
struct FoundSchema {
  TableSchema schema;
  std::string source;  ///< path of the file, or the name of a shipped schema
};

/// Returns the schema of the table with the path request.dataset. It is read from request.schema (a
/// file, or the name of a schema that comes with the program) if this is set, otherwise from the
/// file PATH.schema.toml next to the table; nullopt if there is neither. Throws InputError if the
/// schema cannot be read or is not valid.
std::optional<FoundSchema> find_schema(const DataRequest& request);

}  // namespace cudp
