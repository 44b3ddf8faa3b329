#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "privacy/several_runs.hpp"
#include "runtime/run/budget_file.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// Returns a text that describes the unit of privacy of a training's data: a row, or the rows with
/// the same value in a column. All trainings that share a budget file must have the same text.
std::string protected_unit(const DataSplit& data);

/// Charges one training to budget files (BudgetFile), whose budgets several trainings share. A
/// charge is on disk before the training releases anything, and is never undone.
///
/// If the number of examples is private, it is first released with noise, and the training is
/// planned with the noisy number. The training is then charged in two steps: an estimate before
/// that release, and the cost of the plan, which replaces the estimate, before anything else is
/// released.
class Reservation {
 public:
  Reservation() = default;
  /// Makes a reservation that has charged nothing. budgets: paths of the budget files. note:
  /// description of the training, which is written to the budget files with each of its charges.
  Reservation(BudgetsInUse budgets, std::string note);

  /// Charges an estimate for a training that is about to release the noisy number of its examples;
  /// does nothing if the number is public. Throws BudgetError, without charging any file, if the
  /// budget in one of the files does not suffice; the message states how much of it is left.
  void charge_count(const Training& training);
  /// Charges the planned cost of the whole training; it replaces the estimate of charge_count() if
  /// there is one. Throws BudgetError if the budget in one of the files does not suffice; no file
  /// is charged then.
  void charge_plan(const Training& training);
  /// Charges the cost of the whole training once more, because its random key was lost, so that
  /// steps will be repeated with new noise.
  void charge_again(const Training& training);
  /// Charges the cost of several trainings that together are (epsilon, delta)-DP. unit: description
  /// of their unit of privacy, from protected_unit(). Throws BudgetError if the budget in one of
  /// the files does not suffice; no file is charged then.
  void charge_stated(const std::string& unit, double epsilon, double delta);

  /// Writes the paths of the budget files into the run's folder, where a later process that resumes
  /// the run reads them.
  void write(const RunFolder& folder) const;
  static BudgetsInUse read(const RunFolder& folder);

 private:
  /// The cost of a training that is charged to budget files, and its unit of privacy.
  struct CostBounds {
    /// Functions that compute alternative upper bounds on the privacy cost of the same training;
    /// the first bound that fits into the budget is charged. A bound is a list of costs that are
    /// composed. If a function returns an empty list, it has no bound.
    std::vector<std::function<std::vector<privacy::RunSpending>()>> bounds;
    double factor = 1.0;  ///< safety factor on the Renyi divergence
    std::string unit;
    std::uint64_t unit_rows = 1;
  };
  CostBounds cost_bounds(const Training& training) const;
  void charge(const CostBounds& costs);

  std::vector<std::string> files_;
  std::string note_;
  /// Index of this training's charge in each budget file; empty before the first charge.
  std::vector<std::size_t> charged_;
};

}  // namespace cudp
