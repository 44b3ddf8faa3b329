#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cudp {

/// Estimate of a metric (such as accuracy) for the population that rows are drawn from, with a 95 %
/// confidence interval. The interval covers both the random choice of held-out rows and the noise.
struct ErrorBar {
  std::string name;
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// Noisy confusion matrix of rows held out of the training data, as released. noisy: counts
/// [classes, classes] (row: label, column: predicted class), each with noise of standard deviation
/// noise_std. unit_rows: maximum number of rows of one unit of privacy (e.g. a person). The rows of
/// a unit may all be alike, so intervals are computed as if there were unit_rows times fewer rows.
struct NoisyConfusion {
  int classes = 0;
  std::vector<double> noisy;
  double noise_std = 0.0;
  std::uint64_t unit_rows = 1;
};

/// Returns estimates with 95 % confidence intervals of accuracy, balanced accuracy, and recall and
/// precision of each class, computed from a noisy confusion matrix. If the noise is too large to
/// estimate a metric, its interval is 0 to 1 and its value is 0.5.
///
/// The interval of a fraction p = a / m of noisy counts is the set of p with (a - p m)^2 <= z^2
/// (variance of a - p m at p), where z is the normal quantile for 95 %. The part m p (1 - p) of the
/// variance comes from drawing rows (Wilson 1927; with noise in both counts Fieller 1954). The
/// interval of a mean of fractions is by Zou, Donner 2008 (MOVER).
std::vector<ErrorBar> error_bars(const NoisyConfusion& confusion);

/// Noisy numbers that a run releases about the errors of a regression model on rows held out of the
/// training data: the number of rows, and the sums over rows of (|error| / width)^j for j = 1, 2,
/// 4, where error = prediction - target, and width = max - min of the target's public bounds. Each
/// of the four has noise of standard deviation noise_std.
struct NoisyErrors {
  double rows = 0.0;
  double distances = 0.0;
  double squares = 0.0;
  double fourth_powers = 0.0;
  double width = 1.0;
  double noise_std = 0.0;
  std::uint64_t unit_rows = 1;
};

/// Returns estimates with 95 % confidence intervals of RMSE and MAE, in the target's unit, from
/// noisy sums of errors. The intervals use the normal approximation for means of many rows.
std::vector<ErrorBar> error_bars(const NoisyErrors& errors);

}  // namespace cudp
