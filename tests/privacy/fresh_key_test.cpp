#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/filter.hpp"
#include "privacy/rdp/curve.hpp"

// A run whose key is renewed at moments chosen by what it showed, small enough to be known exactly:
// step t answers a yes-or-no question about one example by randomised response with epsilon_t. The
// attacker sees each answer, stops the run when he likes, and has it go on from any earlier step
// with fresh noise, as long as the books let it. What he learns at best is found by going through
// all that he may do.

namespace cudp::privacy {
namespace {

constexpr double kDelta = 0.03;

/// How often each of the mechanisms was charged, and how many answers more were yes than no.
using Counts = std::vector<int>;

struct Toy {
  std::vector<double> epsilons;  ///< of the mechanisms
  std::vector<int> steps;        ///< which mechanism each is

  std::vector<Release> releases(const Counts& counts) const {
    std::vector<Release> all;
    for (std::size_t m = 0; m < epsilons.size(); ++m)
      if (counts[m] > 0)
        all.push_back({ApproximateDp{epsilons[m], 0.0}, static_cast<std::uint64_t>(counts[m])});
    return all;
  }
  std::vector<Release> plan() const {
    Counts counts(epsilons.size());
    for (const int m : steps) ++counts[static_cast<std::size_t>(m)];
    return releases(counts);
  }
};

using ReleaseAuthority = std::function<bool(const Counts& charged_then)>;

/// The largest P(S) - e^epsilon Q(S) over all that the attacker may do, where the example's answers
/// have the distribution P with it, Q without: delta at epsilon, exactly.
class Attacker {
 public:
  Attacker(const Toy& toy, double epsilon, ReleaseAuthority books)
      : toy_(toy), ratio_(std::exp(epsilon)), books_(std::move(books)) {}

  double best() { return from(0, Counts(toy_.epsilons.size()), Counts(toy_.epsilons.size())); }
  /// Without going back.
  double of_the_plan() {
    renew_ = false;
    return best();
  }

 private:
  double from(std::size_t step, const Counts& charged, const Counts& yes) {
    const auto key = std::tuple(step, charged, yes);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    double loss = 0.0;
    for (std::size_t m = 0; m < yes.size(); ++m) loss += yes[m] * toy_.epsilons[m];
    double best = std::max(0.0, std::exp(loss) - ratio_);  // he stops here
    for (std::size_t s = renew_ ? 0 : step; s <= step && s < toy_.steps.size(); ++s) {
      const auto m = static_cast<std::size_t>(toy_.steps[s]);
      Counts then = charged;
      ++then[m];
      if (!allowed(then)) continue;
      Counts more = yes;
      Counts fewer = yes;
      ++more[m];
      --fewer[m];
      const double p = 1.0 / (1.0 + std::exp(-toy_.epsilons[m]));  // of a yes with it, a no without
      best = std::max(best, (1.0 - p) * from(s + 1, then, more) + p * from(s + 1, then, fewer));
    }
    return values_[key] = best;
  }
  bool allowed(const Counts& then) {
    const auto [known, is_new] = allowed_.try_emplace(then, false);
    if (is_new) known->second = books_(then);
    return known->second;
  }

  const Toy& toy_;
  double ratio_;
  ReleaseAuthority books_;
  bool renew_ = true;
  std::map<std::tuple<std::size_t, Counts, Counts>, double> values_;
  std::map<Counts, bool> allowed_;
};

/// What was charged stays within epsilon, as the accountant bounds releases fixed ahead.
ReleaseAuthority accounted(const Toy& toy, double epsilon) {
  return [&toy, epsilon](const Counts& charged) {
    Accountant accountant({.releases = toy.releases(charged)});
    return accountant.epsilon(kDelta).epsilon <= epsilon;
  };
}

/// A filter, as Filter::authorise decides.
ReleaseAuthority filtered(const Toy& toy, const Budget& budget) {
  return [&toy, budget](const Counts& charged) {
    Filter filter(budget);
    for (const Release& release : toy.releases(charged))
      if (!filter.charge(release)) return false;
    return true;
  };
}

const std::vector<Toy> kToys = {{{0.2, 1.0}, {0, 0, 0, 1, 1}},
                                {{0.2, 0.8}, {0, 0, 0, 1, 1}},
                                {{1.0, 0.2}, {0, 0, 1, 1, 1}},
                                {{0.2, 0.5, 1.0}, {0, 1, 2, 2}}};

TEST(FreshKey, WhereStepsDifferTheAccountantOfWhatWasChargedBoundsNothing) {
  const Toy& toy = kToys[0];
  const double epsilon = Accountant({.releases = toy.plan()}).epsilon(kDelta).epsilon;
  EXPECT_LE(Attacker(toy, epsilon, accounted(toy, epsilon)).of_the_plan(), kDelta);
  // The attack that a run of such steps has to be kept from.
  EXPECT_GT(Attacker(toy, epsilon, accounted(toy, epsilon)).best(), 1.5 * kDelta);
}

TEST(FreshKey, WhereStepsDifferAFilterFromTheStartBoundsIt) {
  for (const Toy& toy : kToys) {
    const double order = epsilon_by_rdp(toy.plan(), kDelta).order;
    AccountantOptions options;
    options.kind = AccountantKind::rdp;
    options.orders = {order};
    const double epsilon =
        Accountant({.releases = toy.plan()}, options).epsilon(kDelta).epsilon * (1.0 + 1e-9);
    const ReleaseAuthority books = filtered(toy, renyi_budget(order, epsilon, kDelta));
    const double planned = Attacker(toy, epsilon, books).of_the_plan();
    const double best = Attacker(toy, epsilon, books).best();
    EXPECT_LE(best, kDelta);
    EXPECT_GT(planned, 0.0);  // the plan passes the filter
    EXPECT_GE(best, planned);
  }
}

/// Only their number is chosen then, and the books bound that.
TEST(FreshKey, WhereStepsAreEqualTheAccountantBoundsIt) {
  for (const double epsilon_of_step : {0.1, 0.3, 1.0}) {
    const Toy toy{{epsilon_of_step}, {0, 0, 0, 0, 0, 0}};
    const double epsilon = Accountant({.releases = toy.plan()}).epsilon(kDelta).epsilon;
    EXPECT_LE(Attacker(toy, epsilon, accounted(toy, epsilon)).best(), kDelta);
  }
}

}  // namespace
}  // namespace cudp::privacy
