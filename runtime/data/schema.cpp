#include "runtime/data/schema.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <set>

#include <toml++/toml.h>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/text/number.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/dates.hpp"
#include "runtime/data/key_names.hpp"

#include "shipped_schemas.hpp"

namespace cudp {
namespace {

/// Describes a value of a schema, for messages.
std::string found_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return shown(text->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (node.is_number()) return "the number " + privacy::number(*node.value<double>());
  if (node.is_table()) return "a table";
  const toml::array* const list = node.as_array();
  if (list == nullptr) return "a date or a time without quotes";
  return list->empty() ? "an empty list" : "a list";
}

/// A TOML table inside a schema, whose values are read by key. Errors state the schema's source,
/// the line and the key.
class Entry {
 public:
  Entry(const toml::table& table, const std::string& source) : table_(table), source_(source) {}

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    bad_input(source_, "line " + std::to_string(table_.source().begin.line), expected, found);
  }

  void allow(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : table_) {
      const std::string_view k = key.str();
      if (std::find(keys.begin(), keys.end(), k) != keys.end()) continue;
      std::string known;
      for (const auto& e : keys) known.append(known.empty() ? "" : ", ").append(e);
      fail("one of the keys " + known, shown(k));
    }
  }

  bool has(std::string_view key) const { return table_.contains(key); }

  std::string text(std::string_view key) const {
    const auto v = table_[key].value<std::string>();
    if (!v) wrong(key, "a text");
    return *v;
  }

  bool flag(std::string_view key, bool fallback) const {
    if (!has(key)) return fallback;
    const auto v = table_[key].value_exact<bool>();
    if (!v) wrong(key, "true or false");
    return *v;
  }

  std::optional<double> number(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    const auto v = table_[key].value<double>();
    if (!v || !table_[key].is_number() || !std::isfinite(*v)) wrong(key, "a finite number");
    return v;
  }

  /// Reads the value of a key that must be one of two words, `first` and `second`. Returns whether
  /// it is `second`; false if the key is absent.
  bool choice(std::string_view key, std::string_view first, std::string_view second) const {
    if (!has(key)) return false;
    const std::string v = text(key);
    if (v != first && v != second) wrong(key, shown(first) + " or " + shown(second));
    return v == second;
  }

  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (const toml::node& node : list(key)) {
      const auto v = node.value_exact<std::string>();
      if (!v)
        fail("a list of texts for '" + std::string(key) + "', each in quotes", found_value(node));
      if (!seen.insert(*v).second)
        fail("different texts in '" + std::string(key) + "'", shown(*v) + " twice");
      out.push_back(*v);
    }
    return out;
  }

  /// Reads the value of a key that may be one text or a list of texts, which may be empty.
  std::vector<std::string> text_or_texts(std::string_view key) const {
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return {text(key)};
    return array->empty() ? std::vector<std::string>{} : texts(key);
  }

  std::vector<double> rising(std::string_view key) const {
    std::vector<double> out;
    if (!has(key)) return out;
    for (const toml::node& node : list(key)) {
      const auto v = node.is_number() ? node.value<double>() : std::nullopt;
      if (!v || !std::isfinite(*v) || (!out.empty() && !(*v > out.back())))
        fail(
            "a list of rising numbers for '" + std::string(key) + "'",
            found_value(node) + (v && !out.empty() ? " after " + privacy::number(out.back()) : ""));
      out.push_back(*v);
    }
    return out;
  }

 private:
  const toml::array& list(std::string_view key) const {
    const toml::array* array = table_[key].as_array();
    if (array == nullptr || array->empty()) wrong(key, "a list with something in it");
    return *array;
  }

  [[noreturn]] void wrong(std::string_view key, const std::string& expected) const {
    fail(expected + " for '" + std::string(key) + "'",
         has(key) ? found_value(*table_.get(key)) : "no such key");
  }

  const toml::table& table_;
  const std::string& source_;
};

/// Converts the text of a date in the schema to days since 1970-01-01. format: the column's date
/// format. key: key of the text, for messages. e: entry of the schema, for messages.
double date_of(const Entry& e, const std::string& format, const std::string& key,
               const std::string& text) {
  const std::optional<double> days = parse_date(text, format);
  if (!days) e.fail("a date of the form " + shown(format) + " for '" + key + "'", shown(text));
  return *days;
}

Numeric parse_date_column(const Entry& e) {
  e.allow({"name", "kind", "format", "min", "max", "edges", "fill"});
  Numeric n;
  n.date_format = e.text("format");
  if (const std::string fault = date_format_fault(n.date_format); !fault.empty())
    e.fail("a form of dates such as '%Y-%m-%d' for 'format'", fault);
  const auto date = [&](const char* key) -> std::optional<double> {
    if (!e.has(key)) return std::nullopt;
    return date_of(e, n.date_format, key, e.text(key));
  };
  n.min = date("min");
  n.max = date("max");
  n.fill = date("fill");
  if (!e.has("edges")) return n;
  for (const std::string& text : e.texts("edges")) {
    const double days = date_of(e, n.date_format, "edges", text);
    if (!n.edges.empty() && days <= n.edges.back())
      e.fail("a list of rising dates for 'edges'", shown(text) + " after a later one");
    n.edges.push_back(days);
  }
  return n;
}

Numeric parse_number_column(const Entry& e) {
  e.allow({"name", "kind", "min", "max", "transform", "edges", "fill"});
  return {.min = e.number("min"),
          .max = e.number("max"),
          .log = e.choice("transform", "linear", "log"),
          .edges = e.rising("edges"),
          .fill = e.number("fill"),
          .date_format = {}};
}

/// Formats a bound of a numeric column as the schema has it: a number, or a date.
std::string bound_text(const Numeric& n, double bound) {
  return n.date_format.empty() ? privacy::number(bound) : format_date(bound, n.date_format);
}

Numeric parse_numeric(const Entry& e, bool date) {
  Numeric n = date ? parse_date_column(e) : parse_number_column(e);
  if (n.min.has_value() != n.max.has_value()) e.fail("both 'min' and 'max', or neither", "one");
  if (n.min && !(*n.min < *n.max && std::isfinite(*n.max - *n.min)))
    e.fail("'min' below 'max'", bound_text(n, *n.min) + " and " + bound_text(n, *n.max));
  return n;
}

Categorical parse_categorical(const Entry& e) {
  e.allow({"name", "kind", "values", "missing", "unknown"});
  Categorical c;
  if (e.has("values")) c.values = e.texts("values");
  c.missing_has_column = e.choice("missing", "zeros", "column");
  c.unknown_is_zeros = e.choice("unknown", "error", "zeros");
  return c;
}

Label parse_label(const Entry& e) {
  e.allow({"name", "kind", "values", "strip_suffix", "fill"});
  Label l;
  if (e.has("values")) {
    l.values = e.texts("values");
    if (l.values.size() < 2 || l.values.size() > kMaxClasses)
      e.fail("2 to " + std::to_string(kMaxClasses) + " texts in 'values'",
             std::to_string(l.values.size()));
  }
  if (e.has("strip_suffix")) l.strip_suffix = e.text("strip_suffix");
  if (e.has("fill")) {
    l.fill = e.text("fill");
    if (std::find(l.values.begin(), l.values.end(), *l.fill) == l.values.end())
      e.fail("one of the label's 'values' for 'fill'", shown(*l.fill));
  }
  return l;
}

Target parse_target(const Entry& e) {
  e.allow({"name", "kind", "min", "max", "fill"});
  Target t{.min = e.number("min"), .max = e.number("max"), .fill = e.number("fill")};
  if (t.min.has_value() != t.max.has_value()) e.fail("both 'min' and 'max', or neither", "one");
  if (t.min && !(*t.min < *t.max))
    e.fail("'min' below 'max'", privacy::number(*t.min) + " and " + privacy::number(*t.max));
  // The bounds, and the difference of two targets, must be finite as float32, the type of targets
  // and predictions.
  constexpr double kMaxFloat = std::numeric_limits<float>::max();
  if (t.min && !(*t.max - *t.min <= kMaxFloat && std::fabs(*t.min) <= kMaxFloat &&
                 std::fabs(*t.max) <= kMaxFloat))
    e.fail("'min' and 'max' up to " + privacy::number(kMaxFloat) + " apart, and from 0",
           privacy::number(*t.min) + " and " + privacy::number(*t.max));
  return t;
}

Column parse_column(const Entry& e) {
  Column column{e.text("name"), Unstated{}};
  const std::string kind = e.text("kind");
  if (kind == "numeric" || kind == "date") {
    column.kind = parse_numeric(e, kind == "date");
  } else if (kind == "categorical") {
    column.kind = parse_categorical(e);
  } else if (kind == "label") {
    column.kind = parse_label(e);
  } else if (kind == "target") {
    column.kind = parse_target(e);
  } else if (kind == "text") {
    e.allow({"name", "kind"});
    column.kind = Text{};
  } else if (kind == "ignore") {
    e.allow({"name", "kind"});
    column.kind = Ignored{};
  } else if (kind == "id") {
    e.allow({"name", "kind"});
    column.kind = Id{};
  } else if (kind.empty()) {
    e.allow({"name", "kind"});  // a draft of `cudp schema`
  } else {
    e.fail("kind numeric, date, categorical, text, label, target, id or ignore", shown(kind));
  }
  return column;
}

std::vector<Column> parse_columns(const toml::array* list, const Entry& top,
                                  const std::string& source) {
  if (list == nullptr || list->empty()) top.fail("a list 'columns'", "none");
  std::vector<Column> columns;
  std::set<std::string> names;
  int labels = 0;
  int ids = 0;
  int texts = 0;
  int others = 0;
  for (const toml::node& node : *list) {
    if (!node.is_table()) top.fail("a table for every entry of 'columns'", "something else");
    const Entry entry(*node.as_table(), source);
    columns.push_back(parse_column(entry));
    const Column& c = columns.back();
    if (c.name.empty() || !names.insert(c.name).second)
      entry.fail("a name no other column has", shown(c.name));
    const bool label = is_predicted(c);
    const bool text = std::holds_alternative<Text>(c.kind);
    labels += label ? 1 : 0;
    texts += text ? 1 : 0;
    const bool id = std::holds_alternative<Id>(c.kind);
    ids += id ? 1 : 0;
    others += !label && !text && !id && !std::holds_alternative<Ignored>(c.kind) ? 1 : 0;
  }
  if (labels != 1) top.fail("exactly one column of kind label or target", std::to_string(labels));
  if (ids > 1) top.fail("at most one column of kind id", std::to_string(ids));
  if (texts > 1 || (texts == 1 && others > 0))
    top.fail("one column of kind text in addition to the label and ignored ones",
             std::to_string(texts) + " and " + std::to_string(others) + " of other kinds");
  return columns;
}

/// Parses the unit of privacy; nullopt if the schema states none. top: the schema's top table.
std::optional<UnitOfPrivacy> parse_unit(const Entry& top, const std::vector<Column>& columns) {
  if (!top.has("unit")) {
    if (top.has("max_rows")) top.fail("a 'unit' with 'max_rows', a column's name", "none");
    return std::nullopt;
  }
  UnitOfPrivacy unit{.column = top.text("unit")};
  const auto column = std::ranges::find(columns, unit.column, &Column::name);
  if (column == columns.end())
    top.fail("the name of one of the columns for 'unit'",
             shown(unit.column) + near_column(unit.column, names_of(columns)));
  if (!std::holds_alternative<Ignored>(column->kind))
    top.fail("kind ignore for " + shown(unit.column) +
                 ", the column of 'unit', whose texts no model sees and no prediction repeats",
             "another kind");
  const std::string range = "a whole number of 1 to " + std::to_string(privacy::kMaxGroup);
  if (!top.has("max_rows"))
    top.fail("'max_rows' with 'unit', how many rows of a unit are used, " + range, "none");
  const double rows = top.number("max_rows").value();
  if (!(rows >= 1.0 && rows <= static_cast<double>(privacy::kMaxGroup)) || rows != std::floor(rows))
    top.fail(range + " for 'max_rows'", privacy::number(rows));
  unit.max_rows = static_cast<std::uint64_t>(rows);
  return unit;
}

/// Parses the metric by which test rows are judged. Throws if it is unknown or there are no
/// classes. top: the schema's top table.
std::string parse_metric(const Entry& top, const std::vector<Column>& columns) {
  std::string metric = top.text("metric");
  if (std::ranges::none_of(columns,
                           [](const Column& c) { return std::holds_alternative<Label>(c.kind); }))
    top.fail("no 'metric' with a target, whose RMSE is shown", shown(metric));
  if (std::ranges::find(kSchemaMetrics, metric) != std::end(kSchemaMetrics)) return metric;
  std::string known;
  for (const std::string_view m : kSchemaMetrics) known.append(known.empty() ? "" : ", ").append(m);
  top.fail("one of " + known + " for 'metric'", shown(metric));
}

}  // namespace

TableSchema parse_schema(std::string_view toml, const std::string& source) {
  toml::table root;
  try {
    root = toml::parse(toml, source);
  } catch (const toml::parse_error& e) {
    bad_input(source, "line " + std::to_string(e.source().begin.line), "valid TOML",
              shown(e.description(), 200));
  }
  const Entry top(root, source);
  top.allow({"name", "delimiter", "quotes", "header", "skip_prefix", "missing", "decimal", "unit",
             "max_rows", "metric", "columns"});
  TableSchema schema;
  if (top.has("name")) schema.name = top.text("name");
  if (top.has("delimiter")) {
    const std::string d = top.text("delimiter");
    if (d.size() != 1 || d == "\n" || d == "\"")
      top.fail("one character for 'delimiter'", shown(d));
    schema.delimiter = d[0];
  }
  schema.quotes = top.flag("quotes", schema.quotes);
  schema.header = top.flag("header", schema.header);
  if (top.has("skip_prefix")) schema.skip_prefix = top.text("skip_prefix");
  if (top.has("missing")) schema.missing = top.text_or_texts("missing");
  if (top.choice("decimal", ".", ",")) {
    schema.decimal = ',';
    if (schema.delimiter == ',' && !schema.quotes)
      top.fail("another 'delimiter' than the decimal comma, or 'quotes'", "','");
  }
  schema.columns = parse_columns(root["columns"].as_array(), top, source);
  schema.unit = parse_unit(top, schema.columns);
  if (top.has("metric")) schema.metric = parse_metric(top, schema.columns);
  const int features = feature_count(schema);
  const bool complete = first_incomplete(schema).empty();
  if (features > kMaxFeatures || (complete && features == 0 && !is_text(schema)))
    top.fail("1 to " + std::to_string(kMaxFeatures) + " features", std::to_string(features));
  return schema;
}

std::string_view shipped_schema(std::string_view name) {
  for (const EmbeddedText& t : shipped_schemas())
    if (t.name == name) return t.text;
  return {};
}

bool is_complete(const Column& column) {
  if (const auto* n = std::get_if<Numeric>(&column.kind)) return n->min && n->max;
  if (const auto* c = std::get_if<Categorical>(&column.kind)) return !c->values.empty();
  if (const auto* l = std::get_if<Label>(&column.kind)) return !l->values.empty();
  if (const auto* t = std::get_if<Target>(&column.kind)) return t->min && t->max;
  return !std::holds_alternative<Unstated>(column.kind);
}

std::string first_incomplete(const TableSchema& schema) {
  for (const Column& c : schema.columns)
    if (!is_complete(c)) return c.name;
  return {};
}

bool is_missing(const TableSchema& schema, const Column& column, std::string_view cell) {
  if (schema.missing)
    return std::find(schema.missing->begin(), schema.missing->end(), cell) != schema.missing->end();
  if (std::holds_alternative<Text>(column.kind)) return false;
  return std::find(std::begin(kUsualMissing), std::end(kUsualMissing), cell) !=
         std::end(kUsualMissing);
}

std::optional<std::size_t> unit_column(const TableSchema& schema) {
  if (!schema.unit) return std::nullopt;
  const auto at = std::ranges::find(schema.columns, schema.unit->column, &Column::name);
  return static_cast<std::size_t>(at - schema.columns.begin());
}

bool is_predicted(const Column& column) {
  return std::holds_alternative<Label>(column.kind) || std::holds_alternative<Target>(column.kind);
}

std::optional<TargetBounds> target_bounds(const TableSchema& schema) {
  for (const Column& c : schema.columns)
    if (const auto* t = std::get_if<Target>(&c.kind)) return TargetBounds{*t->min, *t->max};
  return std::nullopt;
}

bool is_text(const TableSchema& schema) {
  return std::any_of(schema.columns.begin(), schema.columns.end(),
                     [](const Column& c) { return std::holds_alternative<Text>(c.kind); });
}

int feature_count(const Column& column) {
  if (const auto* n = std::get_if<Numeric>(&column.kind))
    return 1 + (n->edges.empty() ? 0 : static_cast<int>(n->edges.size()) + 1);
  if (const auto* c = std::get_if<Categorical>(&column.kind))
    return static_cast<int>(c->values.size()) + (c->missing_has_column ? 1 : 0);
  return 0;
}

int feature_count(const TableSchema& schema) {
  int n = 0;
  for (const Column& c : schema.columns) n += feature_count(c);
  return n;
}

}  // namespace cudp
