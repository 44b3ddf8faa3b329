#include "runtime/data/infer_schema.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/data/column_facts.hpp"
#include "runtime/data/foreign.hpp"
#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

/// Throws InputError if one of the texts is not valid UTF-8. A schema is a TOML file and can
/// contain only UTF-8. file, place: name of the table and description of the position in it, for
/// messages.
void check_texts(const std::vector<std::string>& texts, const std::string& file,
                 const std::string& place) {
  for (const std::string& text : texts)
    if (!is_utf8(text)) bad_input(file, place, "UTF-8 text", encoding_fault(text));
}

}  // namespace

void choose_kind(Column& column, const ColumnFacts& facts) {
  if (facts.all_numbers()) {
    Numeric n;
    if (facts.missing() > 0) n.fill = facts.mean();
    column.kind = n;
  } else if (Numeric dates = facts.dates(); !dates.date_format.empty()) {
    column.kind = std::move(dates);
  } else {
    Categorical c;
    c.missing_has_column = facts.missing() > 0;
    column.kind = std::move(c);
  }
}

namespace {

void complete(Column& column, const ColumnFacts& facts, char decimal, const std::string& file) {
  if (is_complete(column)) return;
  const std::string place = "column " + shown(column.name);
  if (facts.none()) bad_input(file, place, "a value in some training row", "none");
  const auto at_most = [&](std::size_t max, const char* what) {
    if (facts.count() > max)
      bad_input(file, place, "at most " + std::to_string(max) + " " + what, "more; give a schema");
  };
  if (std::holds_alternative<Unstated>(column.kind)) choose_kind(column, facts);
  if (is_complete(column)) return;
  if (auto* n = std::get_if<Numeric>(&column.kind)) {
    if (!n->date_format.empty()) {
      const Numeric dates = facts.dates();
      if (dates.date_format.empty())
        bad_input(file, place,
                  "dates of the form " + shown(n->date_format) + " in every training row",
                  "something else");
      n->min = dates.min;
      n->max = dates.max;
      return;
    }
    if (!facts.all_numbers() || !std::isfinite(facts.max() - facts.min()))
      bad_input(file, place, "finite numbers in every training row", "something else");
    n->min = facts.min();
    n->max = facts.max() > facts.min()
                 ? facts.max()
                 : std::nextafter(facts.min(), std::numeric_limits<double>::infinity());
  } else if (auto* c = std::get_if<Categorical>(&column.kind)) {
    at_most(ColumnFacts::kMaxTexts, "categories");
    c->values = facts.ordered(decimal);
    c->unknown_is_zeros = true;  // a test row may have a text that no training row has
    check_texts(c->values, file, place);
  } else if (auto* t = std::get_if<Target>(&column.kind)) {
    if (!facts.all_numbers() || !(facts.min() < facts.max()) ||
        !std::isfinite(facts.max() - facts.min()))
      bad_input(file, place, "finite numbers, not all the same, in every training row",
                "something else");
    t->min = facts.min();
    t->max = facts.max();
  } else if (auto* l = std::get_if<Label>(&column.kind)) {
    at_most(kMaxClasses, "classes");
    l->values = facts.ordered(decimal);
    if (l->values.size() < 2) bad_input(file, place, "at least two classes", "one");
    check_texts(l->values, file, place);
  }
}

}  // namespace

std::vector<ColumnFacts> facts_of(const TableSchema& schema, ByteReader& reader) {
  std::vector<ColumnFacts> facts;
  for (const Column& column : schema.columns) {
    const auto* n = std::get_if<Numeric>(&column.kind);
    facts.emplace_back(n != nullptr ? n->date_format : std::string());
  }
  for_each_row(reader, schema, [&](const TableRow& row) {
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const Column& column = schema.columns[i];
      if (is_complete(column)) continue;
      if (is_missing(schema, column, row.cells[i])) {
        facts[i].add_missing();
        continue;
      }
      const auto* label = std::get_if<Label>(&column.kind);
      facts[i].add(label != nullptr ? class_text(*label, row.cells[i]) : row.cells[i],
                   schema.decimal);
    }
  });
  return facts;
}

TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader) {
  const std::vector<ColumnFacts> facts = facts_of(schema, reader);
  TableSchema full = schema;
  for (std::size_t i = 0; i < facts.size(); ++i)
    complete(full.columns[i], facts[i], schema.decimal, reader.name());
  const int features = feature_count(full);
  if ((features < 1 && !is_text(full)) || features > kMaxFeatures)
    bad_input(reader.name(), "", "1 to " + std::to_string(kMaxFeatures) + " features",
              std::to_string(features));
  return full;
}

}  // namespace cudp
