#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/several_runs.hpp"

namespace cudp::privacy {

/// Returns a budget for several trainings. Half of delta is reserved for trainings that have a
/// delta of their own, i.e. are known to be (epsilon, delta)-DP only. The filter's Renyi order is
/// the one that gives the tightest bound for a Gaussian mechanism that spends the whole budget. It
/// follows from epsilon and delta alone, so it is fixed before the first training. Throws
/// std::invalid_argument if a number is out of range.
Budget budget_for_runs(double epsilon, double delta);

/// A privacy filter for whole trainings: it keeps all trainings of a project within one budget,
/// although each training (its settings and model) may be chosen after looking at everything that
/// was released so far. The cost of a training is charged before its first release; a training that
/// is refused must not begin. Whatever is chosen, all releases together are (epsilon, delta)-DP for
/// one unit of privacy.
///
/// The cost of a training is its Renyi divergence at the budget's order. The divergence of each of
/// its steps is bounded whatever was released before, by this training or by another, so the sum of
/// the costs bounds the divergence of all releases (Filter). Trainings may therefore also run at
/// the same time, and look at each other's releases: filters are valid for such concurrent
/// composition, too (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu, Zhang 2023, arXiv:2309.05901).
///
/// Costs are integers, in units of 2^-62 of the budget, rounded up.
class RunFilter {
 public:
  /// A training whose cost was charged to the budget.
  struct Run {
    std::uint64_t divergence = 0;  ///< cost as a fraction of the filter's limit [2^-62]
    std::uint64_t failure = 0;     ///< delta as a fraction of Budget::failure [2^-62]
    std::string note;              ///< description of the training, for the owner of the budget
    bool operator==(const Run&) const = default;
  };

  /// Starts an empty filter. Throws std::invalid_argument if the budget is out of range or its
  /// order is 0 (zCDP), std::domain_error if no training can fit into it.
  explicit RunFilter(const Budget& budget);

  /// Records the unit of privacy that the budget protects, e.g. a row of a data set. unit: a text
  /// that describes it; texts are compared, not interpreted. Throws std::invalid_argument if
  /// another unit was recorded before.
  void protect(const std::string& unit);

  /// Returns the cost of one training that spends all of `parts`, for instance on the steps and on
  /// test metrics of held-out rows. group: number of examples in a unit of privacy. Throws
  /// std::invalid_argument if a number is out of range, std::domain_error if no bound is known for
  /// a part.
  RunCost cost(const std::vector<RunSpending>& parts, std::uint64_t group) const;

  /// Charges a training of this cost and returns its index, from 0. Returns nullopt, and changes
  /// nothing, if the remaining budget does not suffice. note: description of the training, for the
  /// budget's owner.
  [[nodiscard]] std::optional<std::size_t> charge(const RunCost& cost, std::string note);

  /// Replaces the charge of training `run`, which was an estimate, by `cost`. Requires run <
  /// runs().size(), and that `cost` covers everything that the training has released. Returns
  /// false, and changes nothing, if the remaining budget does not suffice.
  [[nodiscard]] bool settle(std::size_t run, const RunCost& cost);

  const Budget& budget() const { return budget_; }
  /// Returns the recorded unit of privacy; "" before the first protect().
  const std::string& unit() const { return unit_; }
  const std::vector<Run>& runs() const { return runs_; }

  /// Returns this cost as a fraction of the whole budget: the larger one of its divergence as a
  /// fraction of the limit, and its delta as a fraction of the reserved delta. May exceed 1.
  double fraction(const RunCost& cost) const;
  /// Returns the fraction of the budget's divergence that is left.
  double remaining() const;
  /// Returns the part of the budget's delta that is left for trainings with deltas of their own.
  double delta_left() const;
  /// Returns how much epsilon is left: the epsilon at `delta` of the largest training that still
  /// fits into the budget, 0 if none does. The training is taken to be a Gaussian mechanism.
  /// factor: factor by which the training's Renyi divergence exceeds that of a Gaussian mechanism
  /// with the same epsilon; 1 for a Gaussian mechanism.
  double epsilon_left(double delta, double factor = 1.0) const;

  /// Returns the filter (budget, unit and charges) as text; each line ends with a checksum.
  std::string to_text() const;
  /// Reads the text of to_text(). name: name of the text in messages. Throws std::invalid_argument
  /// if it is damaged, or if its trainings cost more than the budget.
  static RunFilter from_text(std::string_view text, std::string_view name);

  bool operator==(const RunFilter&) const = default;

 private:
  Run priced(const RunCost& cost) const;
  bool fits(const Run& run, std::uint64_t divergence, std::uint64_t failure) const;
  void append(Run run);

  Budget budget_;
  double limit_ = 0.0;  ///< largest Renyi divergence that converts to the budget's epsilon [nats]
  std::string unit_;
  std::vector<Run> runs_;
  std::uint64_t divergence_ = 0, failure_ = 0;  ///< charged so far [2^-62 of the budget]
};

}  // namespace cudp::privacy
