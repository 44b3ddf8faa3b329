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

/// Returns a budget for several trainings. Half of delta is reserved for the trainings' own deltas.
/// The Renyi order is the one at which a Gaussian mechanism that uses the whole budget is bounded
/// best. It follows from epsilon and delta alone, so it is fixed before the first training. Throws
/// std::invalid_argument if a number is out of range.
Budget budget_for_runs(double epsilon, double delta);

/// A privacy filter for whole trainings: which training comes next, with which settings and on
/// which model, may be chosen after looking at everything that was released so far. The cost of a
/// training is charged before its first release; a training that is refused must not begin.
/// Whatever is chosen, all releases together are (epsilon, delta)-DP for one unit of privacy.
///
/// A training costs its divergence at the budget's order. That of each of its steps holds whatever
/// was released before, by this training or by another, so the sum of the charges bounds the
/// divergences of all releases (Filter). Trainings may therefore also run at the same time, and
/// look at each other's releases: such concurrent composition keeps to the same filters (Haney,
/// Shoemate, Tian, Vadhan, Vyrros, Xu, Zhang 2023, arXiv:2309.05901).
///
/// Costs are counted in whole units, 2^-62 of the budget, as by Filter.
class RunFilter {
 public:
  /// A charged training.
  struct Run {
    std::uint64_t divergence = 0;  ///< units of the budget's divergence
    std::uint64_t failure = 0;     ///< units of Budget::failure
    std::string note;              ///< which training it was, for the owner
    bool operator==(const Run&) const = default;
  };

  /// Throws std::invalid_argument and std::domain_error like Filter, and if the order is 0.
  explicit RunFilter(const Budget& budget);

  /// Records whose privacy the budget is for. Throws std::invalid_argument if it is for another
  /// unit already. unit: a description of the unit; it is compared, not interpreted.
  void protect(const std::string& unit);

  /// Returns the cost of runs of one training, which are composed. group: number of examples in a
  /// unit of privacy. Throws like cost_at.
  RunCost cost(const std::vector<RunSpending>& parts, std::uint64_t group) const;

  /// Charges a training and returns its number, from 0; nullopt if the rest of the budget is
  /// smaller: then nothing changes.
  [[nodiscard]] std::optional<std::size_t> charge(const RunCost& cost, std::string note);

  /// Replaces the charge of a training that has released nothing but what `cost` includes, because
  /// its cost was an estimate. Returns false, and changes nothing, if the cost does not fit.
  /// Requires run < runs().size().
  [[nodiscard]] bool settle(std::size_t run, const RunCost& cost);

  const Budget& budget() const { return budget_; }
  const std::string& unit() const { return unit_; }  ///< "" before the first training
  const std::vector<Run>& runs() const { return runs_; }

  /// Fraction of the budget that this cost is: the larger of both parts; may exceed 1.
  double fraction(const RunCost& cost) const;
  /// Fraction of the budget's divergence, and part of its delta, that is left.
  double remaining() const;
  double delta_left() const;
  /// Returns the epsilon at `delta` of a Gaussian mechanism whose divergence, times `factor`, uses
  /// up the rest; 0 if nothing is left. A training of this epsilon costs about that much.
  double epsilon_left(double delta, double factor = 1.0) const;

  /// Returns the filter as text, with checksums, and reads it: like Ledger::to_text. from_text
  /// throws std::invalid_argument if the text is damaged or has charged more than the budget.
  std::string to_text() const;
  static RunFilter from_text(std::string_view text, std::string_view name);

  bool operator==(const RunFilter&) const = default;

 private:
  Run priced(const RunCost& cost) const;
  bool fits(const Run& run, std::uint64_t divergence, std::uint64_t failure) const;
  void append(Run run);

  Budget budget_;
  double limit_ = 0.0;  ///< divergence that the order converts to epsilon [nats]
  std::string unit_;
  std::vector<Run> runs_;
  std::uint64_t divergence_ = 0, failure_ = 0;  ///< charged so far
};

}  // namespace cudp::privacy
