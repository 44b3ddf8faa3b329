#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "runtime/data/find_schema.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/python/module.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

/// Returns the name of the first column that satisfies `is`; "" if there is none.
template <class Is>
std::string name_of_first(const TableSchema& schema, const Is& is) {
  const auto found = std::ranges::find_if(schema.columns, is);
  return found == schema.columns.end() ? "" : found->name;
}

/// Returns what Python needs to write a table with this schema, as a dict:
///   text       the schema as TOML, with the dialect in which Python writes: a header row, commas,
///              quotes, no lines to skip; everything else as in `stated`
///   is_stated  whether `stated` already has this dialect
///   examples   name of the text column; "" if there is none
///   label      name of the label or target column
nb::dict schema_to_write(const TableSchema& stated) {
  const TableSchema usual;
  TableSchema written = stated;
  written.delimiter = usual.delimiter;
  written.quotes = usual.quotes;
  written.header = usual.header;
  written.skip_prefix = usual.skip_prefix;
  nb::dict all;
  all["text"] = schema_toml(written);
  all["is_stated"] = written == stated;
  all["examples"] =
      name_of_first(written, [](const Column& c) { return std::holds_alternative<Text>(c.kind); });
  all["label"] = name_of_first(written, is_predicted);
  return all;
}

/// Finds the schema of a data set and returns the dict that schema_to_write() makes of it; None if
/// there is no schema. The dict also has `source`, the path of the schema's file, or the name of a
/// shipped schema. schema: the setting `schema`, or "". dataset: path of a table, next to which a
/// schema file may be, or "".
nb::object written_schema(const std::string& schema, const std::string& dataset) {
  DataRequest request;
  request.schema = schema;
  request.dataset = dataset;
  const std::optional<FoundSchema> found = find_schema(request);
  if (!found) return nb::none();
  nb::dict all = schema_to_write(found->schema);
  all["source"] = found->source;
  return nb::object(all);
}

/// Parses the text of a schema and returns the dict that schema_to_write() makes of it. source:
/// name of the schema in error messages.
nb::dict written_schema_of(const std::string& text, const std::string& source) {
  return schema_to_write(parse_schema(text, source));
}

}  // namespace

void bind_tables(nb::module_& m) {
  m.def("written_schema", &written_schema);
  m.def("written_schema_of", &written_schema_of);
}

}  // namespace cudp::python
