#include "runtime/data/infer_schema.hpp"
#include "runtime/data/table.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace cudp {
namespace {

constexpr const char* kSchema = R"(
missing = "?"
skip_prefix = "#"
columns = [
  {name = "a", kind = "numeric", min = -1, max = 2, transform = "log", edges = [0, 1], fill = 0},
  {name = "b", kind = "categorical", values = ["x", "y"], missing = "column"},
  {name = "c", kind = "ignore"},
  {name = "d", kind = "label", values = ["no", "yes"], strip_suffix = "."},
])";

void read_rows(const TableSchema& schema, std::span<const std::uint8_t> bytes) {
  const RowEncoder encoder(schema);
  Dataset set = encoder.empty();
  for_each_row(*memory_bytes("fuzz", bytes), schema,
               [&](const TableRow& row) { encoder.append(row, set); });
  must_hold(set.size() > 0);
  must_hold(set.floats.size() == set.size() * static_cast<std::size_t>(set.shape.size()));
  for (const float x : set.floats) must_hold(x >= 0.0f && x <= 1.0f);
  for (const std::uint8_t label : set.labels) must_hold(label < set.classes);
}

}  // namespace
}  // namespace cudp

/// The first byte says what is known of the table.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  return refuse_or_pass([&] {
    TableSchema schema;
    if (data[0] % 2 == 0) {
      schema = schema_from_header(*memory_bytes("fuzz", bytes), data[0] & 2 ? '\t' : ',');
      schema = complete_from_rows(schema, *memory_bytes("fuzz", bytes));
    } else {
      schema = parse_schema(kSchema, "schema");
      schema.header = (data[0] & 2) != 0;
      schema.delimiter = (data[0] & 4) != 0 ? ' ' : ',';
    }
    read_rows(schema, bytes);
  });
}
