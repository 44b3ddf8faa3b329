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

/// Plan for the release of test results of rows held out of the training data: a noisy confusion
/// matrix or, for regression, noisy sums of errors. It depends on public settings only, and is
/// fixed before the run releases any noisy value. Neighbouring data sets differ by one unit of
/// privacy, of up to unit_rows rows.
///
/// The plan's (epsilon, delta) is the guarantee for a unit that is held out. It covers these noisy
/// numbers and, if that is released, the noisy number of training examples. (The model is trained
/// without such a unit, so it reveals nothing about it.) The guarantee for a unit that is trained
/// on is the training's own bound. So the larger of the two bounds holds for every unit
/// (privacy/README.md).
struct HoldoutPlan {
  double share = 0.0;    ///< fraction of the units that are held out; 0: none are
  double epsilon = 0.0;  ///< 0 if no test results are released
  double delta = 0.0;
  /// Noise multiplier of each number: the standard deviation of its noise, divided by the maximum
  /// contribution of one row to it.
  double sigma = 0.0;
  std::uint64_t releases = 0;  ///< how many numbers are released with this noise
  std::uint64_t unit_rows = 1;
  /// Probability from which the second of two classes is predicted; empty to predict the more
  /// probable class. A row adds 1 to one cell of the confusion matrix at any threshold, so the
  /// sensitivity does not depend on it.
  std::optional<double> threshold{};

  bool releases_figures() const { return releases > 0; }
};

/// Number of noisy numbers that are released for the held-out rows of a regression model: the
/// number of rows, and the sums over rows of (|error| / width)^j for j = 1, 2, 4, where width is
/// the target's range. (For a model of classes only a noisy confusion matrix is released.)
inline constexpr std::uint64_t kTargetFigures = 4;

/// Returns the plan with the least noise for which the released numbers are (epsilon, delta)-DP.
/// share: fraction of the units that are held out. target: whether the model is a regression.
/// size_noise: standard deviation of the noise on the number of training examples; 0 if that is
/// public. Throws BudgetError if the release of that number uses up epsilon, or if the test results
/// would be too noisy.
HoldoutPlan plan_holdout(double share, double epsilon, double delta, bool target, double size_noise,
                         std::uint64_t unit_rows);

/// Noisy test results of rows held out of the training data, as they are released: a confusion
/// matrix or sums of errors, and the metrics estimated from them.
struct HoldoutFigures {
  HoldoutPlan plan;
  int classes = 0;  ///< number of classes; 1 for targets
  /// Noisy confusion counts, [classes, classes] (row label, column predicted class); for a
  /// regression model, [kTargetFigures]: the number of rows and three sums of powers of errors.
  std::vector<double> noisy;
  std::vector<ErrorBar> bars;
};

/// Computes test results (a confusion matrix, or sums of errors) of rows held out of the training
/// data, and releases them with noise. gate: charges the privacy budget and adds the noise.
/// predictions: outputs of the final model for the held-out rows. bounds: bounds of the regression
/// target; unused for classes.
HoldoutFigures release_holdout(const HoldoutPlan& plan, const Predictions& predictions, int classes,
                               const TargetBounds& bounds, Gate& gate);

/// Returns the released test results of held-out rows as JSON, the content of the file
/// release/holdout.json. classes: names of the classes; empty for a regression model.
nlohmann::ordered_json to_json(const HoldoutFigures& figures,
                               const std::vector<std::string>& classes);

}  // namespace cudp
