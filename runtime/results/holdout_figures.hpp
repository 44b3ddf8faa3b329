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

/// Plan for the figures of held-out rows that are released. It is a function of public settings,
/// fixed before the first release. Neighbouring data sets differ by a unit of up to unit_rows rows.
///
/// The figures, together with the noisy number of training examples (noise size_noise), are
/// (epsilon, delta)-DP for a unit that is held out, whatever the model is. A unit that is trained
/// on is covered by the training's own bound. The larger of the two bounds holds for every unit
/// (privacy/README.md).
struct HoldoutPlan {
  double share = 0.0;
  double epsilon = 0.0;  ///< 0 if no figures are released
  double delta = 0.0;
  double sigma = 0.0;          ///< noise multiplier of each release: noise / contribution of a row
  std::uint64_t releases = 0;  ///< number of releases with noise sigma
  std::uint64_t unit_rows = 1;
  /// Probability from which the second of two classes is predicted; empty to predict the more
  /// probable class. A row adds 1 to one cell of the confusion matrix at any threshold, so the
  /// sensitivity does not depend on it.
  std::optional<double> threshold{};

  bool releases_figures() const { return releases > 0; }
};

/// Number of releases for a target: the number of rows, and the sums of (|error| / width)^j for j =
/// 1, 2, 4. Classes need a single release, the confusion matrix.
inline constexpr std::uint64_t kTargetFigures = 4;

/// Returns the plan with the least noise that keeps (epsilon, delta). target: whether the model
/// predicts a target. size_noise: noise of the number of training examples; 0 if that is public.
/// Throws BudgetError if the number of training examples has already spent epsilon, or if the noise
/// would be too large.
HoldoutPlan plan_holdout(double share, double epsilon, double delta, bool target, double size_noise,
                         std::uint64_t unit_rows);

/// Noisy figures of the held-out rows.
struct HoldoutFigures {
  HoldoutPlan plan;
  int classes = 0;            ///< number of classes; 1 for targets
  std::vector<double> noisy;  ///< released values: [classes, classes], or [kTargetFigures]
  std::vector<ErrorBar> bars;
};

/// Releases the figures through the gate. predictions: of the held-out rows by the final model.
/// bounds: range of the target; empty for labels.
HoldoutFigures release_holdout(const HoldoutPlan& plan, const Predictions& predictions, int classes,
                               const TargetBounds& bounds, Gate& gate);

/// Returns release/holdout.json. classes: names of the classes, empty for targets.
nlohmann::ordered_json to_json(const HoldoutFigures& figures,
                               const std::vector<std::string>& classes);

}  // namespace cudp
