#include "privacy/verify/stated_bounds.hpp"

#include <cmath>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

#include "privacy/text/number.hpp"
#include "privacy/verify/method_kinds.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using privacy::number;

/// Relative difference between two bounds that is attributed to rounding errors of the accountant.
constexpr double kBoundRounding = 1e-9;
/// Largest group of units in a certificate's table of epsilons: 1, 2, 4, 8 and 16 units.
constexpr std::uint64_t kLargestGroup = 16;
/// Coarseness of bounds for groups: privacy losses are rounded to a grid that is this many times as
/// coarse as usual.
constexpr double kGroupCoarseness = 10.0;

/// Implementation of check_stated_bounds(): recomputes the bounds that a certificate states and
/// collects the differences.
class StatedBounds {
 public:
  StatedBounds(const Json& json, const StatedNumbers& c, const Settings& s, Bounds& bounds)
      : json_(json), c_(c), s_(s), bounds_(bounds) {}

  void check_bound() {
    try {
      const privacy::PrivacyBound& bound =
          bounds_.epsilon({.releases = c_.plan_releases(), .group = c_.max_rows}, options(),
                          c_.plan_delta() - c_.failure);
      const std::string name(privacy::bound_name(bound));
      if (name != c_.accountant)
        wrong_.push_back("accountant: expected " + name + ", found " + c_.accountant);
      expect("epsilon_lower", bound.epsilon_lower);
      expect("loss_interval", bound.interval);
      expect("order", bound.order);
    } catch (const std::exception& e) {
      wrong_.push_back(std::string("the accountant: ") + e.what());
    }
    // If later releases depend on earlier ones, only divergences of an order that was fixed in
    // advance may be added.
    const bool chosen_on_the_way = (c_.size_noise > 0.0 && !c_.split) || c_.method == "dpis";
    if (chosen_on_the_way && !c_.order_fixed)
      wrong_.emplace_back("order_fixed_before: expected true, found false");
    if (c_.order_fixed && !chosen_on_the_way && !s_.is_on("fresh-noise-allowed"))
      wrong_.emplace_back("order_fixed_before: expected false, found true");
  }

  /// Checks the epsilon of a run that released only the noisy number of examples.
  void check_count() {
    try {
      const privacy::PrivacyBound& bound =
          bounds_.epsilon({.releases = c_.releases, .group = c_.max_rows}, {}, c_.training_delta);
      const std::string name(privacy::bound_name(bound));
      if (name != c_.accountant)
        wrong_.push_back("accountant: expected " + name + ", found " + c_.accountant);
      expect("epsilon", bound.epsilon);
    } catch (const std::exception& e) {
      wrong_.push_back(std::string("the accountant: ") + e.what());
    }
  }

  void check_groups(bool has_fresh_key) {
    if (c_.tuning) return;  // a selection has no table: tuning.cpp
    if (!c_.bounds_groups) {
      // A certificate may have no table of groups only for one of the known reasons.
      if (json_.contains("groups") && json_["groups"].is_string() && !has_reason(has_fresh_key) &&
          !epsilon_is_the_budgets())
        wrong_.emplace_back("groups: expected a table, found none");
      return;
    }
    if (c_.holdout) return;  // check_statements has added a finding
    if (has_reason(has_fresh_key)) {
      wrong_.emplace_back(
          "groups: expected no table if releases depend on earlier ones, or a key was lost, "
          "found one");
      return;
    }
    const Json& rows = json_["groups"];
    const char* const of = c_.unit.empty() ? "examples" : "units";
    std::size_t row = 0;
    for (std::uint64_t units = 1; units <= kLargestGroup; units *= 2, ++row) {
      if (row >= rows.size()) break;
      check_group(rows[row], of, units);
    }
    if (row != rows.size() || row != 5)
      wrong_.push_back("groups: expected 5 rows, found " + std::to_string(rows.size()));
  }

  std::vector<std::string> take() { return std::move(wrong_); }

 private:
  privacy::AccountantOptions options() const {
    privacy::AccountantOptions o;
    const std::string kind = s_.has("accountant") ? s_.text("accountant") : std::string("pld");
    if (kind == "rdp") o.kind = privacy::AccountantKind::rdp;
    if (kind == "advanced") o.kind = privacy::AccountantKind::advanced;
    if (c_.order_fixed) {
      o.kind = privacy::AccountantKind::rdp;
      o.orders = {c_.order};
    } else if (c_.method == "dpis") {
      o.kind = privacy::AccountantKind::rdp;
    }
    return o;
  }

  /// Returns whether the certificate may leave out the table of epsilons for groups: such bounds
  /// exist only for releases that were fixed in advance, and not if rows were held out.
  bool has_reason(bool has_fresh_key) const {
    return c_.holdout || c_.order_fixed || c_.split || c_.lost_a_key() || has_fresh_key;
  }
  /// Returns whether the stated epsilon is the whole budget of the settings, as it is after a lost
  /// key even if no step was repeated.
  bool epsilon_is_the_budgets() const {
    return s_.has("epsilon") && c_.training_epsilon == s_.number("epsilon");
  }

  void expect(const char* key, double expected) {
    const double found =
        json_.contains(key) && json_[key].is_number() ? json_[key].get<double>() : 0.0;
    if (std::fabs(found - expected) > kBoundRounding * std::fmax(expected, std::fabs(found)))
      wrong_.push_back(std::string(key) + ": expected " + number(expected) + ", found " +
                       number(found));
  }

  void check_group(const Json& row, const char* of, std::uint64_t units) {
    const std::string where = "groups, " + std::to_string(units) + " " + of;
    std::size_t fields = 2;
    if (!row.is_object() || !row.contains(of) || row[of] != units || !row.contains("epsilon")) {
      wrong_.push_back(where + ": expected a row, found " + row.dump());
      return;
    }
    const Json& epsilon = row["epsilon"];
    privacy::AccountantOptions o = options();
    if (units > 1) o.coarseness = kGroupCoarseness;
    try {
      const double expected =
          bounds_
              .epsilon({.releases = c_.plan_releases(), .group = units * c_.max_rows}, o,
                       c_.plan_delta() - c_.failure)
              .epsilon;
      const double found = epsilon.is_number() ? epsilon.get<double>() : -1.0;
      if (!(std::fabs(found - expected) <= kBoundRounding * expected))
        wrong_.push_back(where + ": expected epsilon " + number(expected) + ", found " +
                         epsilon.dump());
      // The epsilon of one unit must be the certificate's.
      if (units == 1 && std::fabs(c_.training_epsilon - expected) > kBoundRounding * expected)
        wrong_.push_back(where + ": expected the certificate's epsilon, " +
                         number(c_.training_epsilon) + ", found " + epsilon.dump());
    } catch (const std::exception& refusal) {
      ++fields;
      const bool is_known = row.value("reason", Json{}) == refusal.what();
      if (!epsilon.is_null() || !row.contains("reason") || !row["reason"].is_string() || !is_known)
        wrong_.push_back(where + ": expected no epsilon and a reason, found " + row.dump());
    }
    if (row.size() != fields)
      wrong_.push_back(where + ": expected " + std::to_string(fields) + " fields, found " +
                       row.dump());
  }

  const Json& json_;
  const StatedNumbers& c_;
  const Settings& s_;
  Bounds& bounds_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_stated_bounds(const Json& json, const StatedNumbers& c,
                                             const Settings& settings, bool has_fresh_key,
                                             Bounds& bounds) {
  StatedBounds checks(json, c, settings, bounds);
  if (kinds_of(c).engine && c.status == "finished") checks.check_bound();
  if (c.status == "refused") checks.check_count();
  checks.check_groups(has_fresh_key);
  return checks.take();
}

}  // namespace cudp::verify
