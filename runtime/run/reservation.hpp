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

/// Charges of a training to the budgets that it is made under. They are durable before the training
/// releases anything, and are never taken back.
///
/// A training whose number of examples is private is planned after a noisy number was released. It
/// is charged twice: before that release by an estimate, and then, before anything else is
/// released, by the plan.
class Reservation {
 public:
  Reservation() = default;
  /// note: which training it is, for the owner of the budgets.
  Reservation(BudgetsInUse budgets, std::string note);

  bool has_budgets() const { return !files_.empty(); }

  /// Charges a training that is about to release the noisy number of its examples; does nothing if
  /// the number is public. Throws BudgetError, stating what is left, if a budget does not cover it:
  /// then nothing was charged.
  void charge_count(const Training& training);
  /// Charges a training by its plan, or replaces its estimate. Throws like charge_count.
  void charge_plan(const Training& training);
  /// Charges the whole training again, because its key was lost and steps will be repeated.
  void charge_again(const Training& training);

  /// Writes the paths of the budgets into the run's folder, for those who resume the run.
  void write(const RunFolder& folder) const;
  static BudgetsInUse read(const RunFolder& folder);

 private:
  struct Demand {
    /// Alternative bounds of the same training, of which the first that fits is charged. Each is a
    /// list of parts, which are composed; an empty list is no bound.
    std::vector<std::function<std::vector<privacy::RunSpending>()>> bounds;
    double factor = 1.0;  ///< on the divergence
    std::string unit;
    std::uint64_t unit_rows = 1;
  };
  Demand demand_of(const Training& training) const;
  void charge(const Demand& demand);

  std::vector<std::string> files_;
  std::string note_;
  /// Number of this training's charge in each file; empty before the first charge.
  std::vector<std::size_t> charged_;
};

}  // namespace cudp
