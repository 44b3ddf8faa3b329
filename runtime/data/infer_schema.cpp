#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "runtime/data/table.hpp"

namespace cudp {
namespace {

constexpr std::size_t kMaxCategories = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Facts about one column of the training rows.
struct Seen {
  double min = kInfinity;
  double max = -kInfinity;
  bool all_numbers = true;
  std::set<std::string, std::less<>> texts;  // up to one more than any column may have
};

void note(Seen& seen, std::string_view cell) {
  if (seen.texts.size() <= kMaxCategories && !seen.texts.contains(cell)) seen.texts.emplace(cell);
  const std::optional<double> value = seen.all_numbers ? parse_number(cell) : std::nullopt;
  seen.all_numbers = value.has_value();
  if (!value) return;
  seen.min = std::min(seen.min, *value);
  seen.max = std::max(seen.max, *value);
}

/// The texts in order: by value if all are numbers.
std::vector<std::string> ordered(const Seen& seen) {
  std::vector<std::string> out(seen.texts.begin(), seen.texts.end());
  if (seen.all_numbers)
    std::stable_sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
      return *parse_number(a) < *parse_number(b);
    });
  return out;
}

void complete(Column& column, const Seen& seen, const std::string& file) {
  if (is_complete(column)) return;
  const std::string place = "column " + shown(column.name);
  if (seen.texts.empty()) bad_input(file, place, "a value in some training row", "none");
  const auto at_most = [&](std::size_t max, const char* what) {
    if (seen.texts.size() > max)
      bad_input(file, place, "at most " + std::to_string(max) + " " + what, "more; give a schema");
  };
  if (std::holds_alternative<Unstated>(column.kind)) {
    if (seen.all_numbers)
      column.kind = Numeric{};
    else
      column.kind = Categorical{};
  }
  if (auto* n = std::get_if<Numeric>(&column.kind)) {
    if (!seen.all_numbers || !std::isfinite(seen.max - seen.min))
      bad_input(file, place, "finite numbers in every training row", "something else");
    n->min = seen.min;
    n->max = seen.max > seen.min ? seen.max : std::nextafter(seen.min, kInfinity);
  } else if (auto* c = std::get_if<Categorical>(&column.kind)) {
    at_most(kMaxCategories, "categories");
    c->values = ordered(seen);
    c->unknown_is_zeros = true;  // a test row may hold what no training row does
  } else if (auto* l = std::get_if<Label>(&column.kind)) {
    at_most(kMaxClasses, "classes");
    l->values = ordered(seen);
    if (l->values.size() < 2) bad_input(file, place, "at least two classes", "one");
  }
}

}  // namespace

TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader) {
  std::vector<Seen> seen(schema.columns.size());
  for_each_row(reader, schema, [&](const TableRow& row) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (is_complete(schema.columns[i]) || row.cells[i] == schema.missing) continue;
      const auto* label = std::get_if<Label>(&schema.columns[i].kind);
      note(seen[i], label != nullptr ? class_text(*label, row.cells[i]) : row.cells[i]);
    }
  });
  TableSchema full = schema;
  for (std::size_t i = 0; i < seen.size(); ++i) complete(full.columns[i], seen[i], reader.name());
  const int features = feature_count(full);
  if ((features < 1 && !is_text(full)) || features > kMaxFeatures)
    bad_input(reader.name(), "", "1 to " + std::to_string(kMaxFeatures) + " features",
              std::to_string(features));
  return full;
}

}  // namespace cudp
