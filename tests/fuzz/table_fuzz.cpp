#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/examples.hpp"
#include "runtime/data/infer_schema.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/data/table_reader.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace cudp {
namespace {

constexpr const char* kSchema = R"(
missing = ["?", "-9"]
skip_prefix = "#"
columns = [
  {name = "a", kind = "numeric", min = -1, max = 2, transform = "log", edges = [0, 1], fill = 0},
  {name = "b", kind = "categorical", values = ["x", "y"], missing = "column"},
  {name = "c", kind = "id"},
  {name = "e", kind = "date", format = "%d.%m.%Y", min = "01.01.2000", max = "31.12.2020", fill = "01.01.2010"},
  {name = "d", kind = "label", values = ["no", "yes"], strip_suffix = ".", fill = "no"},
])";

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Every code is of its own column's list, or stands for no feature, and |x|^2 is that of the dense
/// row.
void check_rows(const TableSchema& schema, const Dataset& set) {
  const CodedRows rows = set.coded_rows();
  must_hold(set.coded.size() == set.size() * static_cast<std::size_t>(rows.row_bytes));
  const auto features = static_cast<std::uint32_t>(rows.features);
  std::vector<float> x(features);
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::uint8_t* const row = rows.rows + static_cast<std::size_t>(rows.row_bytes) * i;
    std::uint32_t first = 0;  // feature of the column
    int k = 0;
    for (const Column& c : schema.columns) {
      const auto end = first + static_cast<std::uint32_t>(feature_count(c));
      const bool number = std::holds_alternative<Numeric>(c.kind);
      if (end - first > (number ? 1 : 0)) {
        const std::uint32_t code = code_of(rows, row, k++);
        must_hold(code < end ? code >= first + (number ? 1 : 0) : !number && code == features);
      }
      first = end;
    }
    must_hold(k == rows.codes && first == features);
    read_floats(set, i, x);
    double square = 0.0;
    for (const float f : x) {
      must_hold(f >= 0.0f && f <= 1.0f);
      square += static_cast<double>(f) * static_cast<double>(f);
    }
    float kept = 0.0f;
    std::memcpy(&kept, row + 4 * rows.numbers, sizeof kept);
    must_hold(std::fabs(static_cast<double>(kept) - square) <= 0x1p-23 * square);
  }
}

Dataset read_rows(const TableSchema& schema, std::span<const std::uint8_t> bytes,
                  Malformed malformed) {
  const auto reader = memory_bytes("fuzz", bytes);
  TableReader table(*reader, schema, {.malformed = malformed, .max_rows = 3, .ahead = false});
  Dataset set = table.empty();
  TableBlock block;
  while (table.next(block)) append_examples(block.examples, set);
  check_rows(schema, set);
  for (const std::uint8_t label : set.labels) must_hold(label < set.classes);
  return set;
}

/// A line between two others, where malformed rows are missing ones: it is never refused, and the
/// others are what they are without it.
void read_between(TableSchema schema, std::span<const std::uint8_t> bytes) {
  schema.header = false;
  schema.delimiter = ',';
  std::string line;
  for (const std::uint8_t byte : bytes)
    if (byte != '\n' && byte != '"') line += static_cast<char>(byte);
  const std::string before = "1,x,first,02.03.2004,yes\n", after = "2,y,last,03.04.2005,no\n";
  const Dataset plain = read_rows(schema, as_bytes(before + after), Malformed::missing);
  const Dataset set = read_rows(schema, as_bytes(before + line + "\n" + after), Malformed::missing);
  const auto width = static_cast<std::ptrdiff_t>(plain.layout->row_bytes());
  must_hold(set.size() == 2 || set.size() == 3);
  must_hold(std::equal(plain.coded.begin(), plain.coded.begin() + width, set.coded.begin()));
  must_hold(std::equal(plain.coded.begin() + width, plain.coded.end(), set.coded.end() - width));
  must_hold(set.labels.front() == 1 && set.labels.back() == 0);
}

}  // namespace
}  // namespace cudp

/// The first byte says what is known of the table.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  if (data[0] % 8 == 7) {
    read_between(parse_schema(kSchema, "schema"), bytes);
    return 0;
  }
  return refuse_or_pass([&] {
    TableSchema schema;
    Malformed malformed = Malformed::refuse;
    if (data[0] % 2 == 0) {
      schema = schema_from_header(*memory_bytes("fuzz", bytes), data[0] & 2 ? '\t' : ',');
      must_hold(parse_schema(schema_toml(schema), "again").columns.size() == schema.columns.size());
      schema.decimal = (data[0] & 4) != 0 ? ',' : '.';
      schema = complete_from_rows(schema, *memory_bytes("fuzz", bytes));
      must_hold(parse_schema(schema_toml(schema), "again") == schema);
    } else {
      schema = parse_schema(kSchema, "schema");
      schema.header = (data[0] & 2) != 0;
      schema.delimiter = (data[0] & 4) != 0 ? ' ' : ',';
      malformed = (data[0] & 8) != 0 ? Malformed::missing : Malformed::refuse;
    }
    read_rows(schema, bytes, malformed);
  });
}
