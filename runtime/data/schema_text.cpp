#include "runtime/data/schema_text.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/dates.hpp"
#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

/// Formats a number for TOML. A whole number of more than 15 digits gets ".0" at its end: TOML then
/// reads it as a floating-point number. As an integer it might not fit in 64 bits.
std::string toml_number(double value) {
  const std::string digits = number_text(value);
  const bool whole = digits.find_first_of(".e") == std::string::npos;
  return whole && digits.size() > 15 ? digits + ".0" : digits;
}

std::string toml_texts(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out.append(out.size() > 1 ? ", " : "") += toml_text(text);
  return out + "]";
}

/// Formats a value of the numeric column n as in a schema: a number, or a date in quotes.
std::string stated(const Numeric& n, double value) {
  return n.date_format.empty() ? toml_number(value) : toml_text(format_date(value, n.date_format));
}

/// Function object that returns the keys of a column's kind as TOML, separated by ", ".
struct KindKeys {
  std::string operator()(const Unstated&) const { return R"(kind = "")"; }
  std::string operator()(const Text&) const { return R"(kind = "text")"; }
  std::string operator()(const Ignored&) const { return R"(kind = "ignore")"; }
  std::string operator()(const Id&) const { return R"(kind = "id")"; }

  std::string operator()(const Numeric& n) const {
    std::string out = n.date_format.empty()
                          ? R"(kind = "numeric")"
                          : R"(kind = "date", format = )" + toml_text(n.date_format);
    if (n.min && n.max) out += ", min = " + stated(n, *n.min) + ", max = " + stated(n, *n.max);
    if (n.log) out += R"(, transform = "log")";
    if (!n.edges.empty()) {
      std::string list;
      for (const double e : n.edges) list.append(list.empty() ? "" : ", ") += stated(n, e);
      out += ", edges = [" + list + "]";
    }
    if (n.fill) out += ", fill = " + stated(n, *n.fill);
    return out;
  }

  std::string operator()(const Categorical& c) const {
    std::string out = R"(kind = "categorical")";
    if (!c.values.empty()) out += ", values = " + toml_texts(c.values);
    if (c.missing_has_column) out += R"(, missing = "column")";
    if (c.unknown_is_zeros) out += R"(, unknown = "zeros")";
    return out;
  }

  std::string operator()(const Label& l) const {
    std::string out = R"(kind = "label")";
    if (!l.values.empty()) out += ", values = " + toml_texts(l.values);
    if (!l.strip_suffix.empty()) out += ", strip_suffix = " + toml_text(l.strip_suffix);
    if (l.fill) out += ", fill = " + toml_text(*l.fill);
    return out;
  }

  std::string operator()(const Target& t) const {
    std::string out = R"(kind = "target")";
    if (t.min && t.max) out += ", min = " + toml_number(*t.min) + ", max = " + toml_number(*t.max);
    if (t.fill) out += ", fill = " + toml_number(*t.fill);
    return out;
  }
};

void add_names(const Column& column, std::vector<std::string>& names) {
  if (const auto* n = std::get_if<Numeric>(&column.kind)) {
    const auto text = [&](double edge) {
      return n->date_format.empty() ? number_text(edge) : format_date(edge, n->date_format);
    };
    names.push_back(column.name);
    if (n->edges.empty()) return;
    names.push_back(column.name + "<" + text(n->edges.front()));
    for (std::size_t i = 1; i < n->edges.size(); ++i)
      names.push_back(text(n->edges[i - 1]) + "<=" + column.name + "<" + text(n->edges[i]));
    names.push_back(column.name + ">=" + text(n->edges.back()));
  } else if (const auto* c = std::get_if<Categorical>(&column.kind)) {
    for (const std::string& value : c->values) names.push_back(column.name + "=" + value);
    if (c->missing_has_column) names.push_back(column.name + " is missing");
  }
}

}  // namespace

std::string toml_text(std::string_view text) {
  ensure(is_utf8(text), "a text in TOML must be UTF-8");
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string column_toml(const Column& column) {
  return "{name = " + toml_text(column.name) + ", " + std::visit(KindKeys{}, column.kind) + "}";
}

std::string schema_head_toml(const TableSchema& schema) {
  const TableSchema usual;
  std::string out;
  const auto line = [&](const char* key, const std::string& value) {
    out.append(key).append(" = ").append(value).append("\n");
  };
  if (!schema.name.empty()) line("name", toml_text(schema.name));
  line("delimiter", toml_text({&schema.delimiter, 1}));
  if (schema.quotes != usual.quotes) line("quotes", "false");
  if (schema.header != usual.header) line("header", "false");
  if (schema.decimal != usual.decimal) line("decimal", toml_text({&schema.decimal, 1}));
  if (!schema.skip_prefix.empty()) line("skip_prefix", toml_text(schema.skip_prefix));
  if (schema.missing) line("missing", toml_texts(*schema.missing));
  if (schema.unit) {
    line("unit", toml_text(schema.unit->column));
    line("max_rows", std::to_string(schema.unit->max_rows));
  }
  if (!schema.metric.empty()) line("metric", toml_text(schema.metric));
  return out;
}

std::string schema_toml(const TableSchema& schema) {
  std::string out = schema_head_toml(schema) + "columns = [\n";
  for (const Column& column : schema.columns) out += "  " + column_toml(column) + ",\n";
  return out + "]\n";
}

std::vector<std::string> feature_names(const TableSchema& schema) {
  ensure(first_incomplete(schema).empty(), "only a complete schema's features have names");
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(feature_count(schema)));
  for (const Column& column : schema.columns) add_names(column, names);
  return names;
}

}  // namespace cudp
