#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cudp {

/// A number about the population that rows are drawn from, with bounds between which it is in 95 of
/// 100 runs: chance in which rows were held out, and noise, are both in.
struct ErrorBar {
  std::string name;
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// What was released of held-out rows that have labels. noisy: counts [classes, classes], rows the
/// label, columns predicted, each with noise of standard deviation noise_std. unit_rows: how many
/// rows may come from one unit, of which no more is known than that they may be alike: bounds are
/// as wide as for so many times fewer rows.
struct NoisyConfusion {
  int classes = 0;
  std::vector<double> noisy;
  double noise_std = 0.0;
  std::uint64_t unit_rows = 1;
};

/// Accuracy, balanced accuracy, and recall and precision of each class. Where noise leaves nothing
/// of a number its bounds are 0 and 1, and its value is their middle.
///
/// A share p = a / m of noisy counts: all p with (a - p m)^2 <= z^2 (variance of a - p m at that
/// p), of which m p (1 - p) is that of drawing rows (Wilson 1927; with noise in both counts Fieller
/// 1954). The mean of shares: Zou, Donner 2008 (MOVER).
std::vector<ErrorBar> error_bars(const NoisyConfusion& confusion);

/// What was released of held-out rows that have targets: how many there are, and the sums of
/// (|error| / width)^j for j = 1, 2, 4, where width is that of the public bounds. Each has noise of
/// standard deviation noise_std.
struct NoisyErrors {
  double rows = 0.0;
  double distances = 0.0;
  double squares = 0.0;
  double fourth_powers = 0.0;
  double width = 1.0;
  double noise_std = 0.0;
  std::uint64_t unit_rows = 1;
};

/// RMSE and MAE, in the targets' unit, by the normal law of means of many rows.
std::vector<ErrorBar> error_bars(const NoisyErrors& errors);

}  // namespace cudp
