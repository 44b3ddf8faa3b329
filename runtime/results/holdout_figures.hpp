#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/data/target.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/results/holdout_bars.hpp"
#include "runtime/results/predictions.hpp"

namespace cudp {

/// What is said of held-out rows, fixed before the first release: a function of public settings.
/// Neighbours differ by a unit of up to unit_rows rows.
///
/// Together with the release of that number, of noise size_noise, it is (epsilon, delta)-DP for a
/// unit that is held out, whatever the model is; what a training tells of a unit that is trained on
/// is bounded beside it, and the larger of the two bounds holds for every unit
/// (privacy/README.md).
struct HoldoutPlan {
  double share = 0.0;
  double epsilon = 0.0;  ///< 0: nothing is said
  double delta = 0.0;
  double sigma = 0.0;          ///< noise over what a row adds, of each release
  std::uint64_t releases = 0;  ///< of noise sigma
  std::uint64_t unit_rows = 1;
  /// Of two classes: the second is predicted if its probability is at least this. A row is in one
  /// cell of the confusion matrix whatever it is, so that no sensitivity depends on it.
  std::optional<double> threshold{};

  bool says_something() const { return releases > 0; }
};

/// The numbers of each release: a confusion matrix; or of a target how many rows, and the sums of
/// (|error| / width)^j for j = 1, 2, 4, one by one.
inline constexpr std::uint64_t kTargetFigures = 4;

/// Throws BudgetError where the number of training examples has spent epsilon already.
HoldoutPlan plan_holdout(double share, double epsilon, double delta, bool target, double size_noise,
                         std::uint64_t unit_rows);

/// Noisy figures of the held-out rows.
struct HoldoutFigures {
  HoldoutPlan plan;
  int classes = 0;            ///< 1: there are targets
  std::vector<double> noisy;  ///< as released: [classes, classes], or kTargetFigures
  std::vector<ErrorBar> bars;
};

/// Releases them through the gate: predictions of the held-out rows by the final model. bounds: of
/// targets, empty for labels.
HoldoutFigures release_holdout(const HoldoutPlan& plan, const Predictions& predictions, int classes,
                               const TargetBounds& bounds, Gate& gate);

/// release/holdout.json. classes: their names, empty for targets.
nlohmann::ordered_json to_json(const HoldoutFigures& figures,
                               const std::vector<std::string>& classes);

}  // namespace cudp
