#pragma once
#include <cstdint>
#include <span>

#include "privacy/ledger.hpp"

namespace cudp::privacy {

/// A budget for releases of which each may be chosen by looking at those before: which mechanism,
/// with how much noise, how many, and when to stop. A method asks before each release, and does not
/// release what was refused:
///
///   Filter filter(renyi_budget(Filter::best_order(plan, delta), epsilon, delta));
///   ...
///   if (!filter.charge({Gaussian{sigma}, 1})) stop();
///   save(filter.ledger().to_text());  // before the noise is drawn
///   release();
///
/// Whatever the method does, all that it releases together is (epsilon, delta)-DP for adding or
/// removing one example, or as many as Budget::group says. The Renyi filter adds up divergences of
/// one order, which is in the ledger from the start, and refuses what would exceed the one
/// divergence that order turns into epsilon at delta (Feldman, Zrnic 2021, arXiv:2008.11193,
/// Theorem 3.1; Lecuyer 2021, arXiv:2103.01379; the conversion: Canonne, Kamath, Steinke 2020,
/// Proposition 12). The order may not be chosen anew by what was spent: with the order that happens
/// to be best the sums bound nothing. The zCDP filter adds up rho: then the sum bounds every order
/// (Whitehouse, Ramdas, Rogers, Wu 2023, arXiv:2203.05481, Theorem 1). That theorem also lets the
/// deltas of ApproximateDp mechanisms add up, to Budget::failure; its proof goes order by order,
/// and so holds for one.
///
/// Costs are counted in whole units, 2^-62 of the budget, each release rounded up. Their sum is
/// exact and does not depend on how equal releases were merged, so that a filter made from a ledger
/// that was read back decides as the one that wrote it.
class Filter {
 public:
  /// An empty ledger with this budget. Throws std::invalid_argument where it is out of range, and
  /// std::domain_error where the order's own price log(1/delta)/(order - 1) exceeds epsilon.
  explicit Filter(const Budget& budget);

  /// Goes on where a ledger ends; the count of a split is not its to pay for. Throws
  /// std::invalid_argument where it has no budget, or has spent more than that: no filter wrote it.
  explicit Filter(Ledger ledger);

  /// The Renyi order at which the plan's epsilon is least: of the worst case that training may come
  /// to, before training. Throws std::domain_error for a plan that releases nothing.
  static double best_order(std::span<const Release> plan, double delta, std::uint64_t group = 1);

  /// Whether `count` more of these releases are within the budget. Throws std::invalid_argument for
  /// a mechanism out of range and std::domain_error for one without a bound, as charge does.
  bool admits(const Release& releases) const;

  /// Charges the releases and says true; or says false and changes nothing.
  [[nodiscard]] bool charge(const Release& releases);

  /// Charges numbered steps, as Ledger::authorise does: what the present key may replay is free.
  /// Throws what that throws.
  [[nodiscard]] bool authorise(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism);

  /// See Ledger::fresh_key.
  void fresh_key(std::uint64_t step) { ledger_.fresh_key(step); }

  /// How many more of these releases the budget allows; 2^64 - 1 where they are free.
  std::uint64_t affordable(const Mechanism& mechanism) const;

  /// The cost of one release, and the limit on all: a divergence at the order, or rho, in nats.
  double cost(const Mechanism& mechanism) const;
  double limit() const { return limit_; }

  /// How much of the limit is left, 0 to 1.
  double remaining() const;

  /// The guarantee that holds from the start, for all that was and will be let through.
  const Budget& budget() const { return *ledger_.budget(); }

  /// The releases that have been let through. They must be durable before they are made.
  const Ledger& ledger() const { return ledger_; }

 private:
  struct Price {
    std::uint64_t divergence = 0;  ///< in units of the limit, rounded up
    std::uint64_t failure = 0;     ///< in units of Budget::failure, rounded up
  };
  Price price(const Mechanism& mechanism) const;
  bool fits(const Price& price, std::uint64_t count) const;
  void spend(const Price& price, std::uint64_t count);

  Ledger ledger_;
  double limit_ = 0.0;
  Price spent_;
};

/// The budgets of the two filters. `failure` is the part of delta that ApproximateDp mechanisms may
/// use up; nothing else needs any.
inline Budget renyi_budget(double order, double epsilon, double delta, double failure = 0.0,
                           std::uint64_t group = 1) {
  return {.order = order, .epsilon = epsilon, .delta = delta, .failure = failure, .group = group};
}
inline Budget zcdp_budget(double epsilon, double delta, double failure = 0.0,
                          std::uint64_t group = 1) {
  return renyi_budget(0.0, epsilon, delta, failure, group);
}

}  // namespace cudp::privacy
