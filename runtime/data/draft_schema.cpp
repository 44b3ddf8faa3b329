#include "runtime/data/draft_schema.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/infer_schema.hpp"
#include "runtime/data/key_names.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/data/table.hpp"
#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFromHeader =
    R"(# Drafted from the header alone. Nothing here is read from the rows: a model may learn about private
# rows only through noise, and bounds, categories and classes that are read from them bypass it.
# State what is publicly known, for each column one of
#   kind = "numeric", min = 0, max = 100            (fill = 50: the value of a missing cell)
#   kind = "date", format = "%Y-%m-%d", min = "2000-01-01", max = "2029-12-31"
#   kind = "categorical", values = ["a", "b"]       (missing = "column", unknown = "zeros")
#   kind = "text", kind = "id" (predictions repeat it) or kind = "ignore"
# If the rows are public, `cudp schema FILE --public` drafts all of this.
)";

constexpr const char* kFromRows =
    R"(# Drafted from the rows, which were declared public. Bounds are the smallest and largest values, and
# later rows may be outside: they are clamped. Check the kinds, and round bounds to what is known.
)";

constexpr const char* kWhosePrivacy =
    R"(# Whose privacy: a certificate is for each row. If a person can have several rows, state the column
# that identifies persons (of kind "ignore"), and how many rows of each person are used, from public
# knowledge. The certificate is then for all rows of a person.
)";

/// A column of the drafted schema, and the TOML comment to write after it.
struct Line {
  Column column;
  std::string comment{};
};

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

void choose_label(TableSchema& schema, const std::string& name, const std::string& file) {
  if (name.empty()) return;
  bool found = false;
  for (Column& c : schema.columns) {
    c.kind = Unstated{};
    if (c.name != name) continue;
    c.kind = Label{};
    found = true;
  }
  if (!found)
    bad_input(file, "", "a column " + shown(name),
              "none of that name in the header row" + near_column(name, names_of(schema.columns)));
}

void choose_target(TableSchema& schema, const std::string& name, const std::string& file) {
  choose_label(schema, name, file);
  for (Column& c : schema.columns)
    if (std::holds_alternative<Label>(c.kind)) c.kind = Target{};
}

/// Number of rows with each distinct text of a column that identifies rows or persons (rows_of),
/// and number of rows of the table (rows). Counted only if the rows are public.
struct Repeats {
  std::unordered_map<std::string, std::uint64_t> rows_of;
  std::uint64_t rows = 0;

  std::uint64_t max_rows() const {
    std::uint64_t most = 0;
    for (const auto& [text, count] : rows_of) most = std::max(most, count);
    return most;
  }
  std::string comment() const {
    if (max_rows() <= 1) return "no text comes twice";
    return "repeats: " + std::to_string(rows_of.size()) + " texts in " + std::to_string(rows) +
           " rows, up to " + std::to_string(max_rows()) + " of one";
  }
};

/// Counts of the texts of each column that identifies rows or persons; the key is the column's
/// name. Empty if the rows are not public.
using RepeatsByName = std::map<std::string, Repeats>;

bool is_key(const Column& c) {
  return std::holds_alternative<Unstated>(c.kind) && (names_rows(c.name) || names_persons(c.name));
}

RepeatsByName repeats_of(const TableSchema& schema, const fs::path& table) {
  RepeatsByName all;
  std::vector<std::pair<std::size_t, Repeats*>> keys;
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (is_key(schema.columns[i])) keys.emplace_back(i, &all[schema.columns[i].name]);
  if (keys.empty()) return all;
  for_each_row(*open_bytes(table), schema, [&](const TableRow& row) {
    for (const auto& [i, repeats] : keys) {
      ++repeats->rows_of[std::string(trimmed(row.cells[i]))];
      ++repeats->rows;
    }
  });
  return all;
}

/// Guesses from their names which columns identify rows or persons, and sets their kinds. At most
/// one column gets the kind `id`: the first whose name suggests that it identifies rows; if there
/// is none, the first that identifies persons. A column with a repeated text is never the id. All
/// other columns that identify persons get the kind `ignore`. repeats: counts of repeated texts, by
/// column name.
void choose_id(TableSchema& schema, const RepeatsByName& repeats) {
  Column* id = nullptr;
  for (Column& c : schema.columns) {
    const auto known = repeats.find(c.name);
    if (!is_key(c) || (known != repeats.end() && known->second.max_rows() > 1)) continue;
    const bool better = id == nullptr || (names_persons(id->name) && !names_persons(c.name));
    if (better) id = &c;
  }
  if (id != nullptr) id->kind = Id{};
  for (Column& c : schema.columns)
    if (is_key(c) && names_persons(c.name)) c.kind = Ignored{};
}

/// Returns the schema keys of the unit of privacy as TOML comments, for the user to uncomment.
std::string unit_lines(const TableSchema& schema) {
  const std::string column = column_of_persons(schema);
  return kWhosePrivacy + ("# unit = " + toml_text(column.empty() ? "COLUMN" : column)) +
         "\n# max_rows = 4\n";
}

Line from_header(const Column& column) {
  if (std::holds_alternative<Unstated>(column.kind)) return {column, "state the kind"};
  if (std::holds_alternative<Target>(column.kind))
    return {column, "state the bounds of the number to predict: min = 0, max = 100"};
  if (std::holds_alternative<Label>(column.kind))
    return {column, R"(state the classes in order: values = ["no", "yes"])"};
  const char* const unit = "; kind = \"ignore\" if it is the unit of privacy";
  const bool persons = names_persons(column.name);
  if (std::holds_alternative<Id>(column.kind))
    return {column, "an id by its name: no feature, repeated in predictions" +
                        std::string(persons ? unit : "")};
  return {
      column,
      "by its name it identifies persons: see unit; kind = \"id\" if predictions are to repeat it"};
}

Line target_from_rows(const Column& column, const ColumnFacts& facts) {
  Line line{column, {}};
  if (facts.none() || !facts.all_numbers() || !(facts.min() < facts.max()))
    return {column, "not numbers, or all the same: is it the target? --target names another"};
  auto& target = std::get<Target>(line.column.kind);
  target.min = facts.min();
  target.max = facts.max();
  if (facts.missing() > 0)
    line.comment = "some rows have none: fill = NUMBER states what they count as";
  return line;
}

bool all_utf8(const std::vector<std::string>& texts) {
  return std::all_of(texts.begin(), texts.end(), [](const std::string& t) { return is_utf8(t); });
}

Line label_from_rows(const Column& column, const ColumnFacts& facts, char decimal) {
  Line line{column, {}};
  const auto classes = facts.count();
  if (classes < 2 || classes > kMaxClasses)
    return {column, (classes < 2 ? "fewer than 2" : "more than 256") +
                        std::string(" different values: is it the label? --label names another")};
  auto& label = std::get<Label>(line.column.kind);
  label.values = facts.ordered(decimal);
  if (!all_utf8(label.values)) return {column, "its values are not UTF-8"};
  if (facts.missing() > 0)
    line.comment = R"(some rows have none: fill = "CLASS" states what they count as)";
  return line;
}

Line from_rows(const Column& column, const ColumnFacts& facts, char decimal) {
  if (std::holds_alternative<Id>(column.kind) || std::holds_alternative<Ignored>(column.kind))
    return from_header(column);
  if (std::holds_alternative<Label>(column.kind)) return label_from_rows(column, facts, decimal);
  if (std::holds_alternative<Target>(column.kind)) return target_from_rows(column, facts);
  Line line{column, {}};
  if (facts.none()) return {{column.name, Ignored{}}, "no row has a value"};
  choose_kind(line.column, facts);
  if (auto* n = std::get_if<Numeric>(&line.column.kind)) {
    if (n->date_format.empty()) {
      n->min = facts.min();
      n->max = facts.max();
      if (!(*n->min < *n->max)) return {{column.name, Ignored{}}, "the same number in every row"};
    }
    if (n->fill) line.comment = "fill is the mean of the rows that have a value";
  } else if (auto* c = std::get_if<Categorical>(&line.column.kind)) {
    if (facts.count() > ColumnFacts::kMaxTexts)
      return {{column.name, Ignored{}}, "more than 1000 different texts; or kind = \"text\""};
    c->values = facts.ordered(decimal);
    if (!all_utf8(c->values)) return {{column.name, Ignored{}}, "its values are not UTF-8"};
  }
  return line;
}

/// Computes the statistics of the table's columns for both decimal separators, '.' and ','. Returns
/// the statistics for the separator with which more columns are numeric, and sets schema.decimal to
/// it. table: the file with the rows.
std::vector<ColumnFacts> facts_with_decimal(TableSchema& schema, const fs::path& table) {
  const auto numbers = [](const std::vector<ColumnFacts>& facts) {
    return std::count_if(facts.begin(), facts.end(),
                         [](const ColumnFacts& f) { return !f.none() && f.all_numbers(); });
  };
  std::vector<ColumnFacts> points = facts_of(schema, *open_bytes(table));
  TableSchema with_comma = schema;
  with_comma.decimal = ',';
  std::vector<ColumnFacts> commas = facts_of(with_comma, *open_bytes(table));
  if (numbers(commas) <= numbers(points)) return points;
  schema.decimal = ',';
  return commas;
}

}  // namespace

char delimiter_of(const fs::path& table) {
  fs::path name = table.filename();
  if (name.extension() == ".gz" || name.extension() == ".xz") name.replace_extension();
  const std::string ending = lower_case(name.extension().string());
  return ending == ".tsv" || ending == ".tab" ? '\t' : ',';
}

std::string draft_schema(const fs::path& table, const DraftOptions& options) {
  const char delimiter = options.delimiter.empty() ? delimiter_of(table) : options.delimiter[0];
  TableSchema schema = schema_from_header(*open_bytes(table), delimiter);
  if (options.target.empty())
    choose_label(schema, options.label, table.string());
  else
    choose_target(schema, options.target, table.string());
  const RepeatsByName repeats =
      options.rows_are_public ? repeats_of(schema, table) : RepeatsByName{};
  choose_id(schema, repeats);
  std::vector<Line> lines;
  if (options.rows_are_public) {
    const std::vector<ColumnFacts> facts = facts_with_decimal(schema, table);
    for (std::size_t i = 0; i < facts.size(); ++i)
      lines.push_back(from_rows(schema.columns[i], facts[i], schema.decimal));
  } else {
    for (const Column& column : schema.columns) lines.push_back(from_header(column));
  }
  for (Line& line : lines)
    if (const auto known = repeats.find(line.column.name); known != repeats.end())
      line.comment += (line.comment.empty() ? "" : "; ") + known->second.comment();
  TableSchema head = schema;
  head.columns.clear();
  std::string out = (options.rows_are_public ? kFromRows : kFromHeader) + schema_head_toml(head);
  out += unit_lines(schema);
  out += "columns = [\n";
  for (const Line& line : lines)
    out += "  " + column_toml(line.column) + "," +
           (line.comment.empty() ? "" : "  # " + line.comment) + "\n";
  return out + "]\n";
}

}  // namespace cudp
