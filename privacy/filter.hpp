#pragma once
#include <cstdint>

#include "privacy/ledger.hpp"

namespace cudp::privacy {

/// A privacy filter: it keeps all releases of a run within a budget that is fixed at the start,
/// although each release (its mechanism, noise and count) may be chosen after looking at the
/// earlier ones. A method queries the filter before each release, and does not make a release that
/// was refused:
///
///   Filter filter(renyi_budget(epsilon_by_rdp(plan, delta).order, epsilon, delta));
///   ...
///   if (!filter.charge({Gaussian{sigma}, 1})) stop();
///   save(filter.ledger().to_text());  // before the noise is drawn
///   release();
///
/// Whatever the method does, all its releases together are (epsilon, delta)-DP for adding or
/// removing one example, or Budget::group examples.
///
/// The Renyi filter adds divergences of one order, which is in the ledger from the start. It
/// refuses a release if the sum would then exceed the largest divergence that this order converts
/// to epsilon at delta (Feldman, Zrnic 2021, arXiv:2008.11193, Theorem 3.1; Lecuyer 2021,
/// arXiv:2103.01379; the conversion: Canonne, Kamath, Steinke 2020, Proposition 12). The order must
/// not be chosen again from the releases so far: the sum at an order that was chosen in this way is
/// not a valid bound.
///
/// The zCDP filter adds rho; the sum then bounds every order (Whitehouse, Ramdas, Rogers, Wu 2023,
/// arXiv:2203.05481, Theorem 1). That theorem also lets the deltas of ApproximateDp mechanisms add
/// up, to Budget::failure. Its proof treats each order separately, and so holds for a single order.
///
/// Costs are integers, in units of 2^-62 of the budget; the cost of each release is rounded up.
/// Their sum is exact and does not depend on how equal releases were merged. So a filter made from
/// a ledger that was read back decides like the one that wrote it.
class Filter {
 public:
  /// Starts an empty ledger with this budget. Throws std::invalid_argument if the budget is out of
  /// range, and std::domain_error if the budget's Renyi order converts even the divergence 0 to
  /// epsilon or more (about log(1/delta)/(order - 1)).
  explicit Filter(const Budget& budget);

  /// Continues the ledger of an earlier filter, e.g. after a restart. If a noisy number of examples
  /// has its own part of the budget, its release is not counted. Throws std::invalid_argument if
  /// the ledger states no budget, or has spent more than its budget, which no filter would have
  /// allowed.
  explicit Filter(Ledger ledger);

  /// Returns whether the remaining budget suffices for these releases. Throws std::invalid_argument
  /// if the mechanism's numbers are out of range, and std::domain_error if no bound on its
  /// divergence is known.
  bool admits(const Release& releases) const;

  /// Charges the releases and returns true if the remaining budget suffices; otherwise returns
  /// false and changes nothing. Throws the exceptions of admits().
  [[nodiscard]] bool charge(const Release& releases);

  /// Charges steps [begin, end), each a release of this mechanism. A step that was already charged
  /// under the current random key is free: running it again gives the same output. Returns false,
  /// and changes nothing, if the remaining budget does not suffice. Throws std::invalid_argument
  /// unless the steps continue, or repeat, those that ran with the current key (Ledger::authorise).
  [[nodiscard]] bool authorise(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism);

  /// Records that the random key, which draws the noise, is lost and training continues from `step`
  /// with a new one. Steps from there on then have new noise, and are charged again.
  void fresh_key(std::uint64_t step) { ledger_.fresh_key(step); }

  /// Returns the cost of one release [nats]: its Renyi divergence at the filter's order or, for a
  /// zCDP filter, the rho with which its divergence of every order alpha is at most rho alpha.
  double cost(const Mechanism& mechanism) const;
  /// Returns the limit on the sum of all costs [nats].
  double limit() const { return limit_; }

  /// Returns the fraction of the limit that is left, 0 to 1.
  double remaining() const;

  /// Returns the (epsilon, delta) guarantee for all releases that were and will be admitted. It
  /// holds from the start.
  const Budget& budget() const { return *ledger_.budget(); }

  /// Returns the admitted releases. The caller must store the ledger durably before it makes them.
  const Ledger& ledger() const { return ledger_; }

 private:
  /// Cost of releases, as fractions of the budget's two parts: the sum of divergences that it
  /// allows, and the delta that it reserves for mechanisms with a delta of their own.
  struct BudgetShare {
    /// The releases' Renyi divergence (or rho), as a fraction of limit() [2^-62], rounded up.
    std::uint64_t divergence = 0;
    /// The releases' delta, as a fraction of Budget::failure [2^-62], rounded up.
    std::uint64_t failure = 0;
  };
  BudgetShare budget_share(const Mechanism& mechanism) const;
  bool fits(const BudgetShare& share, std::uint64_t count) const;
  void spend(const BudgetShare& share, std::uint64_t count);

  Ledger ledger_;
  double limit_ = 0.0;
  BudgetShare spent_;
};

/// Number of units in a whole budget: filters count costs in units of 2^-62 of the budget.
inline constexpr std::uint64_t kBudgetUnits = std::uint64_t{1} << 62;
/// Returns the fraction part / all of a budget in units of 2^-62, rounded up; kBudgetUnits + 1,
/// which no budget admits, if the part exceeds the budget.
std::uint64_t budget_units(double part, double all);

/// Returns the budget of a filter that adds Renyi divergences of this order. failure: part of delta
/// reserved for ApproximateDp mechanisms, which are only known to be (epsilon, delta)-DP; no other
/// mechanism uses it. group: number of examples by which neighbours differ.
inline Budget renyi_budget(double order, double epsilon, double delta, double failure = 0.0,
                           std::uint64_t group = 1) {
  return {.order = order, .epsilon = epsilon, .delta = delta, .failure = failure, .group = group};
}
/// Returns the budget of a filter that adds the rho of zCDP (zero-concentrated DP): a release costs
/// rho if its Renyi divergence of every order alpha is at most rho alpha. failure: part of delta
/// reserved for ApproximateDp mechanisms, which are only known to be (epsilon, delta)-DP. group:
/// number of examples by which neighbours differ.
inline Budget zcdp_budget(double epsilon, double delta, double failure = 0.0,
                          std::uint64_t group = 1) {
  return renyi_budget(0.0, epsilon, delta, failure, group);
}

}  // namespace cudp::privacy
