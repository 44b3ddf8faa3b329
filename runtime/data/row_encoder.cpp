#include "runtime/data/row_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/data/foreign.hpp"

namespace cudp {
namespace {

const std::vector<std::string>* texts_of(const Column& column) {
  if (const auto* c = std::get_if<Categorical>(&column.kind)) return &c->values;
  if (const auto* l = std::get_if<Label>(&column.kind)) return &l->values;
  return nullptr;
}

/// Returns the index of the interval of a numeric column that x falls in: the number of edges that
/// are at most x. Requires that the edges ascend.
std::ptrdiff_t interval_of(double x, const std::vector<double>& edges) {
  constexpr std::size_t kFew =
      16;  // up to this number, counting without a branch is faster than bisection
  if (edges.size() <= kFew) return std::ranges::count_if(edges, [&](double e) { return e <= x; });
  return std::ranges::upper_bound(edges, x) - edges.begin();
}

RowLayout layout_of(const TableSchema& schema) {
  RowLayout layout;
  for (const Column& c : schema.columns) {
    const auto* n = std::get_if<Numeric>(&c.kind);
    if (n != nullptr) layout.number_feature.push_back(layout.features);
    if (std::holds_alternative<Categorical>(c.kind) || (n != nullptr && !n->edges.empty()))
      ++layout.codes;
    layout.features += feature_count(c);
  }
  return layout;
}

/// Returns the cell's text for an error message, with a hint if it is not UTF-8.
std::string found_text(std::string_view cell) {
  std::string odd = encoding_fault(cell);
  return odd.empty() ? shown(cell) : odd;
}

}  // namespace

RowEncoder::RowEncoder(const TableSchema& schema, const TextCoder* texts, Malformed malformed,
                       bool scoring)
    : schema_(schema), malformed_(malformed), scoring_(scoring) {
  ensure(first_incomplete(schema).empty(), "a table's schema must be complete");
  ensure(is_text(schema) == (texts != nullptr), "texts must have words");
  if (texts != nullptr) texts_.emplace(*texts);
  bool may_be_number = false;
  if (schema.missing)
    may_be_number = std::any_of(
        schema.missing->begin(), schema.missing->end(),
        [](const std::string& m) { return m.find_first_of("0123456789") != std::string::npos; });
  codes_.reserve(schema.columns.size());
  for (const Column& c : schema.columns) {
    Code& code = codes_.emplace_back(Code{c, features_, 0.0, may_be_number, {}});
    if (const auto* n = std::get_if<Numeric>(&c.kind))
      code.log_range = std::log1p(*n->max - *n->min);
    if (const auto* list = texts_of(c)) code.lookup = TextTable(*list);
    features_ += feature_count(c);
  }
  if (!texts_) layout_ = std::make_shared<const RowLayout>(layout_of(schema));
}

Dataset RowEncoder::empty() const {
  Dataset set;
  set.shape = {features_, 1, 1};
  set.layout = layout_;
  if (texts_) texts_->describe(set);
  for (const Column& c : schema_.columns)
    if (const auto* l = std::get_if<Label>(&c.kind))
      set.classes = static_cast<int>(l->values.size());
    else if (std::holds_alternative<Target>(c.kind))
      set.classes = 1;
  return set;
}

void RowEncoder::reserve(Dataset& set, std::uint64_t rows) const {
  if (texts_)
    set.tokens.reserve(rows * static_cast<std::uint64_t>(set.shape.size()));
  else
    set.coded.reserve(rows * static_cast<std::uint64_t>(layout_->row_bytes()));
  set.labels.reserve(rows);
  if (set.has_targets()) set.targets.reserve(rows);
}

void RowEncoder::append(const TableRow& row, bool with_label, Dataset& to,
                        TableFaults& faults) const {
  std::optional<RowWriter> out;
  if (layout_ != nullptr) {
    const std::size_t start = to.coded.size();
    to.coded.resize(start + static_cast<std::size_t>(layout_->row_bytes()));
    out.emplace(*layout_, to.coded.data() + start);
  }
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const Code& code = codes_[i];
    const std::string_view cell = row.cells[i];
    const auto& kind = code.column.kind;
    if (const auto* c = std::get_if<Categorical>(&kind)) {
      out->code(category(code, *c, row, cell, faults));
    } else if (const auto* n = std::get_if<Numeric>(&kind)) {
      put_number(code, *n, row, cell, *out, faults);
    } else if (const auto* l = std::get_if<Label>(&kind)) {
      to.labels.push_back(with_label ? class_of(code, *l, row, cell, faults) : 0);
    } else if (const auto* t = std::get_if<Target>(&kind)) {
      to.labels.push_back(0);
      to.targets.push_back(with_label ? target_of(code, *t, row, cell, faults) : 0.0f);
    } else if (std::holds_alternative<Text>(kind)) {
      const bool missing = row.malformed || is_missing(schema_, code.column, cell);
      texts_->append(missing ? std::string_view() : cell, to);
    }
  }
  if (out) out->finish();
}

/// Returns whether a cell, whose text is not a valid value of the column, counts as a missing
/// value. code: the column, with values that were computed from it.
bool RowEncoder::counts_as_missing(const Code& code, const TableRow& row,
                                   std::string_view cell) const {
  return row.malformed || malformed_ == Malformed::missing ||
         is_missing(schema_, code.column, cell);
}

std::uint32_t RowEncoder::category(const Code& code, const Categorical& categorical,
                                   const TableRow& row, std::string_view cell,
                                   TableFaults& faults) const {
  // The cells of a malformed row are empty texts. They are not looked up, because "" may be one of
  // the column's values.
  const int found = row.malformed ? TextTable::kNone : code.lookup.find(cell);
  if (found != TextTable::kNone) {
    return static_cast<std::uint32_t>(code.offset + found);
  } else if (!row.malformed && categorical.unknown_is_zeros &&
             !is_missing(schema_, code.column, cell)) {
    // The text is not one of the column's values. As the schema states, the cell then sets no
    // feature.
  } else if (counts_as_missing(code, row, cell)) {
    if (categorical.missing_has_column)
      return static_cast<std::uint32_t>(code.offset) +
             static_cast<std::uint32_t>(categorical.values.size());
  } else {
    faults.add(row.line, code.column.name,
               "one of the schema's " + std::to_string(categorical.values.size()) + " values",
               found_text(cell) + (scoring_ ? ", which the model does not know; --malformed "
                                              "missing treats it as a missing value"
                                            : ""));
  }
  return static_cast<std::uint32_t>(features_);
}

std::uint8_t RowEncoder::class_of(const Code& code, const Label& label, const TableRow& row,
                                  std::string_view cell, TableFaults& faults) const {
  int found = row.malformed ? TextTable::kNone : code.lookup.find(class_text(label, cell));
  if (found == TextTable::kNone && label.fill && counts_as_missing(code, row, cell))
    found = code.lookup.find(*label.fill);
  if (found != TextTable::kNone) return static_cast<std::uint8_t>(found);
  faults.add(row.line, code.column.name,
             "one of the schema's " + std::to_string(label.values.size()) + " classes",
             found_text(cell));
  return 0;
}

float RowEncoder::target_of(const Code& code, const Target& target, const TableRow& row,
                            std::string_view cell, TableFaults& faults) const {
  std::optional<double> value;
  if (!row.malformed && !(code.missing_may_be_number && is_missing(schema_, code.column, cell)))
    value = parse_cell(schema_, Numeric{}, cell);
  if (!value && target.fill && counts_as_missing(code, row, cell)) value = target.fill;
  if (!value)
    faults.add(row.line, code.column.name, "a finite number",
               found_text(cell) + (is_missing(schema_, code.column, cell)
                                       ? ", which is missing; 'fill' in the schema gives it a value"
                                       : ""));
  return TargetBounds{*target.min, *target.max}.scaled(value.value_or(*target.min));
}

void RowEncoder::put_number(const Code& code, const Numeric& numeric, const TableRow& row,
                            std::string_view cell, RowWriter& out, TableFaults& faults) const {
  std::optional<double> value;
  if (!row.malformed && !(code.missing_may_be_number && is_missing(schema_, code.column, cell)))
    value = parse_cell(schema_, numeric, cell);
  if (!value && numeric.fill && counts_as_missing(code, row, cell)) value = numeric.fill;
  if (!value) {
    const bool missing = is_missing(schema_, code.column, cell);
    faults.add(row.line, code.column.name,
               numeric.date_format.empty() ? "a finite number"
                                           : "a date of the form " + shown(numeric.date_format),
               found_text(cell) +
                   (missing ? ", which is missing; 'fill' in the schema gives it a value" : ""));
    value = *numeric.min;  // the row is meaningless, but must be complete
  }
  const double min = *numeric.min, max = *numeric.max;
  const double x = std::clamp(*value, min, max);
  out.number(static_cast<float>(numeric.log ? std::log1p(x - min) / code.log_range
                                            : (x - min) / (max - min)));
  if (numeric.edges.empty()) return;
  out.code(static_cast<std::uint32_t>(code.offset + 1 + interval_of(*value, numeric.edges)));
}

void require_missing_codes(const TableSchema& schema, std::string_view source) {
  for (const Column& c : schema.columns) {
    const auto* n = std::get_if<Numeric>(&c.kind);
    const auto* l = std::get_if<Label>(&c.kind);
    const auto* t = std::get_if<Target>(&c.kind);
    if (!((n != nullptr && !n->fill) || (l != nullptr && !l->fill) || (t != nullptr && !t->fill)))
      continue;
    bad_input(source, "column " + shown(c.name),
              "a 'fill' for --malformed missing: what a cell that cannot be read stands for",
              "none");
  }
}

}  // namespace cudp
