#include "runtime/data/table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "runtime/base/error.hpp"
#include "runtime/data/csv.hpp"

namespace cudp {
namespace {

std::string line_place(std::uint64_t line) { return "line " + std::to_string(line); }

/// The next line that is neither blank nor a comment.
bool next_content(LineReader& lines, const std::string& skip_prefix, std::string_view& line) {
  while (lines.next(line)) {
    const bool comment = !skip_prefix.empty() && line.starts_with(skip_prefix);
    if (!comment && !trimmed(line).empty()) return true;
  }
  return false;
}

/// For each of the schema's columns, where the header row has it.
std::vector<std::size_t> positions(const TableSchema& schema, const LineReader& lines,
                                   std::span<const std::string_view> header) {
  std::vector<std::size_t> out;
  for (const Column& c : schema.columns) {
    const auto found = std::find(header.begin(), header.end(), c.name);
    if (found == header.end())
      bad_input(lines.file(), line_place(lines.number()), "a column " + shown(c.name),
                "none of that name in the header row");
    out.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  for (const std::string_view name : header)
    if (std::none_of(schema.columns.begin(), schema.columns.end(),
                     [&](const Column& c) { return c.name == name; }))
      bad_input(lines.file(), line_place(lines.number()), "only columns the schema names",
                shown(name));
  if (header.size() != schema.columns.size())
    bad_input(lines.file(), line_place(lines.number()), "each column once",
              std::to_string(header.size()) + " names");
  return out;
}

const std::vector<std::string>* texts_of(const Column& column) {
  if (const auto* c = std::get_if<Categorical>(&column.kind)) return &c->values;
  if (const auto* l = std::get_if<Label>(&column.kind)) return &l->values;
  return nullptr;
}

int class_of(const TableRow& row, const Column& column, const Label& label,
             const std::unordered_map<std::string_view, int>& lookup, std::string_view cell) {
  const auto found = lookup.find(class_text(label, cell));
  if (found == lookup.end())
    row.fail(column, "one of the schema's " + std::to_string(label.values.size()) + " classes",
             shown(cell));
  return found->second;
}

}  // namespace

void TableRow::fail(const Column& column, std::string_view expected, std::string_view found) const {
  bad_input(file, line_place(line) + ", column " + shown(column.name), expected, found);
}

void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use) {
  LineReader lines(reader);
  CellSplitter splitter(schema.delimiter, schema.quotes);
  std::string_view line;
  std::vector<std::size_t> order;
  if (schema.header && next_content(lines, schema.skip_prefix, line))
    order = positions(schema, lines, splitter.split(lines, line));
  std::vector<std::string_view> cells(schema.columns.size());
  bool any = false;
  while (next_content(lines, schema.skip_prefix, line)) {
    const auto found = splitter.split(lines, line);
    if (found.size() != cells.size())
      bad_input(lines.file(), line_place(lines.number()), std::to_string(cells.size()) + " cells",
                std::to_string(found.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = found[order.empty() ? i : order[i]];
    use({lines.file(), lines.number(), line, cells});
    any = true;
  }
  if (!any) bad_input(lines.file(), "", "at least one row", "none");
}

std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema) {
  LineReader lines(reader);
  std::string_view line;
  if (schema.header) next_content(lines, schema.skip_prefix, line);
  std::uint64_t rows = 0;
  while (next_content(lines, schema.skip_prefix, line)) ++rows;
  return rows;
}

TableSchema schema_from_header(ByteReader& reader, char delimiter) {
  LineReader lines(reader);
  CellSplitter splitter(delimiter);
  std::string_view line;
  if (!next_content(lines, "", line)) bad_input(reader.name(), "", "a header row", "none");
  TableSchema schema;
  schema.delimiter = delimiter;
  std::set<std::string> names;
  std::size_t label = 0;
  bool named = false;
  for (const std::string_view cell : splitter.split(lines, line)) {
    std::string name(cell);
    if (name.empty() || !names.insert(name).second)
      bad_input(reader.name(), line_place(lines.number()), "a different name for every column",
                shown(name));
    std::string lower = name;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!named) label = schema.columns.size();
    named = named || lower == "label" || lower == "class" || lower == "target";
    schema.columns.push_back({std::move(name), Unstated{}});
  }
  schema.columns[label].kind = Label{};
  if (schema.columns.size() < 2)
    bad_input(reader.name(), line_place(lines.number()), "at least two columns", "one");
  return schema;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string_view class_text(const Label& label, std::string_view cell) {
  if (cell.ends_with(label.strip_suffix)) cell.remove_suffix(label.strip_suffix.size());
  return cell;
}

WordCounter count_words(ByteReader& reader, const TableSchema& schema) {
  WordCounter counter;
  for_each_row(reader, schema, [&](const TableRow& row) {
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      if (std::holds_alternative<Text>(schema.columns[i].kind) && row.cells[i] != schema.missing)
        counter.add(row.cells[i]);
  });
  return counter;
}

RowEncoder::RowEncoder(const TableSchema& schema, const TextCoder* texts) : schema_(schema) {
  ensure(first_incomplete(schema).empty(), "a table's schema must be complete");
  ensure(is_text(schema) == (texts != nullptr), "texts must have words");
  if (texts != nullptr) texts_.emplace(*texts);
  for (const Column& c : schema.columns) {
    Lookup& lookup = lookups_.emplace_back();
    if (const auto* list = texts_of(c))
      for (const std::string& text : *list) lookup.emplace(text, static_cast<int>(lookup.size()));
    offsets_.push_back(features_);
    features_ += feature_count(c);
  }
}

Dataset RowEncoder::empty() const {
  Dataset set;
  set.shape = {features_, 1, 1};
  if (texts_) texts_->describe(set);
  for (const Column& c : schema_.columns)
    if (const auto* l = std::get_if<Label>(&c.kind))
      set.classes = static_cast<int>(l->values.size());
  return set;
}

void RowEncoder::reserve(Dataset& set, std::uint64_t rows) const {
  if (texts_)
    set.tokens.reserve(rows * static_cast<std::uint64_t>(set.shape.size()));
  else
    set.floats.reserve(rows * static_cast<std::uint64_t>(features_));
  set.labels.reserve(rows);
}

void RowEncoder::append(const TableRow& row, Dataset& to) const {
  const std::size_t start = to.floats.size();
  to.floats.resize(start + static_cast<std::size_t>(features_), 0.0f);
  for (std::size_t i = 0; i < schema_.columns.size(); ++i) {
    const Column& column = schema_.columns[i];
    const std::string_view cell = row.cells[i];
    const bool missing = cell == schema_.missing;
    float* const out = to.floats.data() + start + offsets_[i];
    if (const auto* n = std::get_if<Numeric>(&column.kind)) {
      put_number(row, column, *n, missing, cell, out);
    } else if (const auto* c = std::get_if<Categorical>(&column.kind)) {
      const auto found = lookups_[i].find(cell);
      if (found != lookups_[i].end()) {
        out[found->second] = 1.0f;
      } else if (missing) {
        if (c->missing_has_column) out[c->values.size()] = 1.0f;
      } else if (!c->unknown_is_zeros) {
        row.fail(column, "one of the schema's " + std::to_string(c->values.size()) + " values",
                 shown(cell));
      }
    } else if (std::holds_alternative<Text>(column.kind)) {
      texts_->append(missing ? std::string_view() : cell, to);
    } else if (const auto* l = std::get_if<Label>(&column.kind)) {
      to.labels.push_back(static_cast<std::uint8_t>(class_of(row, column, *l, lookups_[i], cell)));
    }
  }
}

void RowEncoder::put_number(const TableRow& row, const Column& column, const Numeric& numeric,
                            bool missing, std::string_view cell, float* out) {
  const std::optional<double> value = missing && numeric.fill ? numeric.fill : parse_number(cell);
  if (!value) row.fail(column, "a finite number", shown(cell));
  const double min = *numeric.min, max = *numeric.max;
  const double x = std::clamp(*value, min, max);
  out[0] = static_cast<float>(numeric.log ? std::log1p(x - min) / std::log1p(max - min)
                                          : (x - min) / (max - min));
  if (numeric.edges.empty()) return;
  const auto above = std::upper_bound(numeric.edges.begin(), numeric.edges.end(), *value);
  out[1 + (above - numeric.edges.begin())] = 1.0f;
}

}  // namespace cudp
