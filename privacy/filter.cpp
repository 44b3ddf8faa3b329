#include "privacy/filter.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr std::uint64_t whole = kBudgetUnits;

/// Returns the largest Renyi divergence of this order [nats] that converts to at most epsilon at
/// delta.
double largest_divergence(double order, double epsilon, double delta) {
  double rdp = epsilon - epsilon_at(order, 0.0, delta);
  for (double step = rounding; rdp > 0.0 && epsilon_at(order, rdp, delta) > epsilon; step *= 2.0)
    rdp -= step * (epsilon + rdp);
  if (!(rdp > 0.0))
    throw std::domain_error("epsilon " + number(epsilon) + " at delta " + number(delta) +
                            " cannot be guaranteed at Renyi order " + number(order) +
                            ": the order alone costs " + number(epsilon_at(order, 0.0, delta)));
  return rdp;
}

Ledger empty_ledger(const Budget& budget) {
  Ledger ledger;
  ledger.limit(budget);
  return ledger;
}

}  // namespace

std::uint64_t budget_units(double part, double all) {
  if (part == 0.0) return 0;
  const double share = part / all * (1.0 + 2.0 * rounding);
  if (!(share <= 1.0)) return part <= all ? whole : whole + 1;
  return static_cast<std::uint64_t>(std::ceil(share * 0x1p62));
}

Filter::Filter(const Budget& budget) : Filter(empty_ledger(budget)) {}

Filter::Filter(Ledger ledger) : ledger_(std::move(ledger)) {
  if (!ledger_.budget())
    throw std::invalid_argument("ledger: expected a budget in its first line, found none");
  const Budget& b = budget();
  const double delta = (b.delta - b.failure) * (1.0 - rounding);
  limit_ =
      b.order == 0.0 ? zcdp_for(b.epsilon, delta) : largest_divergence(b.order, b.epsilon, delta);
  for (const Release& release : ledger_.releases_after_count()) {
    const BudgetShare each = budget_share(release.mechanism);
    if (!fits(each, release.count))
      throw std::invalid_argument("ledger: expected releases within its budget, found more");
    spend(each, release.count);
  }
}

double Filter::cost(const Mechanism& mechanism) const {
  const Neighbours neighbours{.group = budget().group};
  return budget().order == 0.0 ? zcdp_of(mechanism, neighbours)
                               : rdp(mechanism, budget().order, neighbours);
}

Filter::BudgetShare Filter::budget_share(const Mechanism& mechanism) const {
  if (releases_nothing({.mechanism = mechanism, .count = 1})) {
    check(mechanism);
    return {};
  }
  return {
      .divergence = budget_units(cost(mechanism), limit_),
      .failure = budget_units(failure_of(mechanism, {.group = budget().group}), budget().failure)};
}

bool Filter::fits(const BudgetShare& share, std::uint64_t count) const {
  const auto within = [count](std::uint64_t each, std::uint64_t spent) {
    return each == 0 || count <= (whole - spent) / each;
  };
  return within(share.divergence, spent_.divergence) && within(share.failure, spent_.failure);
}

void Filter::spend(const BudgetShare& share, std::uint64_t count) {
  spent_.divergence += share.divergence * count;
  spent_.failure += share.failure * count;
}

bool Filter::admits(const Release& releases) const {
  return fits(budget_share(releases.mechanism), releases.count);
}

bool Filter::charge(const Release& releases) {
  const BudgetShare each = budget_share(releases.mechanism);
  if (!fits(each, releases.count)) return false;
  ledger_.charge(releases);
  spend(each, releases.count);
  return true;
}

bool Filter::authorise(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism) {
  const std::uint64_t count = ledger_.uncharged_steps(begin, end, mechanism);
  const BudgetShare each = budget_share(mechanism);
  if (!fits(each, count)) return false;
  ledger_.authorise(begin, end, mechanism);
  spend(each, count);
  return true;
}

double Filter::remaining() const {
  return static_cast<double>(whole - spent_.divergence) / static_cast<double>(whole);
}

}  // namespace cudp::privacy
