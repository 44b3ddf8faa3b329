#include "runtime/data/match_schema.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "privacy/text/number.hpp"
#include "runtime/data/bytes.hpp"

namespace cudp {
namespace {

/// Returns whether a model depends on the column c: whether c gives features, or is the class or
/// number that the model predicts.
bool counts(const Column& c) {
  return !std::holds_alternative<Ignored>(c.kind) && !std::holds_alternative<Id>(c.kind);
}

const char* kind_of(const Column& c) {
  constexpr const char* kNames[] = {"unstated", "numeric", "categorical", "label",
                                    "text",     "ignore",  "id",          "target"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(c.kind)>);
  return kNames[c.kind.index()];
}

template <class Bounded>
std::string bounds_text(const Bounded& n) {
  return "bounds " + privacy::number(*n.min) + " to " + privacy::number(*n.max);
}

std::string edges_text(const Numeric& n) {
  std::string text = "edges [";
  for (std::size_t i = 0; i < n.edges.size(); ++i)
    text += (i > 0 ? ", " : "") + privacy::number(n.edges[i]);
  return text + "]";
}

std::string fill_text(const Numeric& n) {
  return n.fill ? "fill " + privacy::number(*n.fill) : "no fill";
}

/// Compares the columns of two schemas, that of a model's training data and that of another table.
/// Throws InputError if a column differs.
class Match {
 public:
  Match(std::string source, std::string model)
      : source_(std::move(source)), model_(std::move(model)) {}

  [[noreturn]] void fail(const std::string& place, const std::string& expected,
                         const std::string& found) const {
    bad_input(source_, place, expected + ", as " + model_ + " was trained with", found);
  }

  /// Checks `given`, a column of the table to score, against `trained`, the column with which the
  /// model was trained. Copies parts that `given` lacks from `trained`.
  void column(const Column& trained, Column& given) const {
    if (std::holds_alternative<Unstated>(given.kind)) given.kind = trained.kind;
    const std::string place = "column " + shown(given.name);
    if (trained.kind.index() != given.kind.index())
      fail(place, std::string("kind ") + kind_of(trained), kind_of(given));
    if (auto* n = std::get_if<Numeric>(&given.kind))
      numeric(place, std::get<Numeric>(trained.kind), *n);
    if (auto* c = std::get_if<Categorical>(&given.kind))
      categorical(place, std::get<Categorical>(trained.kind), *c);
    if (auto* l = std::get_if<Label>(&given.kind)) {
      const Label& of_model = std::get<Label>(trained.kind);
      if (l->values.empty()) l->values = of_model.values;
      texts(place, "class", of_model.values, l->values);
    }
    if (auto* t = std::get_if<Target>(&given.kind))
      target(place, std::get<Target>(trained.kind), *t);
  }

 private:
  void numeric(const std::string& place, const Numeric& trained, Numeric& given) const {
    if (!given.min) {
      given.min = trained.min;
      given.max = trained.max;
    }
    if (trained.min != given.min || trained.max != given.max)
      fail(place, bounds_text(trained), bounds_text(given));
    if (trained.log != given.log)
      fail(place, trained.log ? "transform log" : "transform linear", given.log ? "log" : "linear");
    if (trained.edges != given.edges) fail(place, edges_text(trained), edges_text(given));
    if (trained.fill != given.fill) fail(place, fill_text(trained), fill_text(given));
  }

  void target(const std::string& place, const Target& trained, Target& given) const {
    if (!given.min) {
      given.min = trained.min;
      given.max = trained.max;
    }
    if (trained.min != given.min || trained.max != given.max)
      fail(place, bounds_text(trained), bounds_text(given));
  }

  void categorical(const std::string& place, const Categorical& trained, Categorical& given) const {
    if (given.values.empty()) given.values = trained.values;
    texts(place, "category", trained.values, given.values);
    if (trained.missing_has_column != given.missing_has_column)
      fail(place, trained.missing_has_column ? "missing column" : "missing zeros",
           given.missing_has_column ? "column" : "zeros");
  }

  void texts(const std::string& place, const char* what, const std::vector<std::string>& trained,
             const std::vector<std::string>& given) const {
    for (std::size_t i = 0; i < std::max(trained.size(), given.size()); ++i) {
      const auto text = [&](const std::vector<std::string>& all) {
        return i < all.size() ? shown(all[i]) : std::string("none");
      };
      if (text(trained) != text(given) || i >= std::min(trained.size(), given.size()) ||
          trained[i] != given[i])
        fail(place, text(trained) + " as " + what + " " + std::to_string(i + 1), text(given));
    }
  }

  std::string source_;
  std::string model_;
};

}  // namespace

TableSchema matched_schema(const TableSchema& trained, const TableSchema& given,
                           const std::string& source, const std::string& model) {
  const Match match(source, model);
  TableSchema schema = given;
  // The label gives no feature, so its position does not matter.
  const auto features = [](const TableSchema& s) {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < s.columns.size(); ++i)
      if (counts(s.columns[i]) && !is_predicted(s.columns[i])) indices.push_back(i);
    return indices;
  };
  const auto label = [](auto& s) { return std::ranges::find_if(s.columns, is_predicted); };
  const std::vector<std::size_t> expected = features(trained);
  const std::vector<std::size_t> found = features(schema);
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const auto name = [&](const TableSchema& s, const std::vector<std::size_t>& indices) {
      return i < indices.size() ? shown(s.columns[indices[i]].name) : std::string("none");
    };
    const std::string place = "feature column " + std::to_string(i + 1);
    if (i >= std::min(expected.size(), found.size()) ||
        trained.columns[expected[i]].name != schema.columns[found[i]].name)
      match.fail(place, name(trained, expected), name(schema, found));
    match.column(trained.columns[expected[i]], schema.columns[found[i]]);
  }
  const auto ours = label(schema);
  const auto theirs = label(trained);
  if (ours->name != theirs->name)
    match.fail("", std::string("a ") + kind_of(*theirs) + " " + shown(theirs->name),
               shown(ours->name));
  match.column(*theirs, *ours);
  return schema;
}

}  // namespace cudp
