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

/// Plan for the release of test figures of rows held out of the training data: a noisy confusion
/// matrix, or noisy sums of errors. It depends on public settings only and is fixed before the
/// first release. Neighbouring data sets differ by one unit of privacy, of up to unit_rows rows.
///
/// The figures, together with the noisy number of training examples (noise size_noise), are
/// (epsilon, delta)-DP for a unit that is held out, whatever the model is. A unit that is trained
/// on is covered by the training's own bound. The larger of the two bounds holds for every unit
/// (privacy/README.md).
struct HoldoutPlan {
  double share = 0.0;    ///< fraction of the units that are held out; 0: none are
  double epsilon = 0.0;  ///< 0 if no figures are released
  double delta = 0.0;
  /// Noise multiplier of each figure: standard deviation / maximum contribution of a row.
  double sigma = 0.0;
  std::uint64_t releases = 0;  ///< number of figures that are released with this noise
  std::uint64_t unit_rows = 1;
  /// Probability from which the second of two classes is predicted; empty to predict the more
  /// probable class. A row adds 1 to one cell of the confusion matrix at any threshold, so the
  /// sensitivity does not depend on it.
  std::optional<double> threshold{};

  bool releases_figures() const { return releases > 0; }
};

/// Number of figures released for a regression model: the number of rows, and the sums of (|error|
/// / width)^j for j = 1, 2, 4. A model of classes needs one release, the confusion matrix.
inline constexpr std::uint64_t kTargetFigures = 4;

/// Returns the plan with the least noise for which the figures are (epsilon, delta)-DP. share:
/// fraction of the units that are held out. target: whether the model is a regression. size_noise:
/// standard deviation of the noise on the number of training examples; 0 if that is public. Throws
/// BudgetError if releasing that number has already spent epsilon, or if the noise would be too
/// large.
HoldoutPlan plan_holdout(double share, double epsilon, double delta, bool target, double size_noise,
                         std::uint64_t unit_rows);

/// Released noisy figures of the held-out rows.
struct HoldoutFigures {
  HoldoutPlan plan;
  int classes = 0;  ///< number of classes; 1 for targets
  /// [classes, classes] confusion counts, or [kTargetFigures] error sums.
  std::vector<double> noisy;
  std::vector<ErrorBar> bars;
};

/// Computes the figures of held-out rows and releases them with noise. gate: charges the budget and
/// adds the noise. predictions: of the final model for the held-out rows. bounds: of the regression
/// target; empty for classes.
HoldoutFigures release_holdout(const HoldoutPlan& plan, const Predictions& predictions, int classes,
                               const TargetBounds& bounds, Gate& gate);

/// Returns the content of release/holdout.json. classes: names of the classes; empty for a
/// regression.
nlohmann::ordered_json to_json(const HoldoutFigures& figures,
                               const std::vector<std::string>& classes);

}  // namespace cudp
