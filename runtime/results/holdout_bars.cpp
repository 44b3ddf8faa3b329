#include "runtime/results/holdout_bars.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cudp {
namespace {

constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution

/// A fraction in / all of held-out rows, computed from noisy counts. in: number of rows in a class
/// or cell. all: number of rows in a larger set that includes them.
struct ClassShare {
  double in = 0.0, all = 0.0;
  /// Variances of the noise in the count `in`, and in the count `all` - `in`.
  double in_noise = 0.0, out_noise = 0.0;
};

ErrorBar bar_of(std::string name, const ClassShare& s, double unit_rows) {
  ErrorBar bar{.name = std::move(name), .value = 0.5, .low = 0.0, .high = 1.0};
  if (!(s.all > 0.0)) return bar;
  // Solves (a - p m)^2 <= z^2 (k m p (1 - p) + v (1 - p)^2 + w p^2) for p, in the form A p^2 - 2 B
  // p + C <= 0. a, m: the counts in and all; v, w: in_noise and out_noise; k: unit_rows.
  const double z2 = kZ * kZ, rows = unit_rows * s.all;
  const double A = s.all * s.all + z2 * (rows - s.in_noise - s.out_noise);
  const double B = s.in * s.all + z2 * (0.5 * rows - s.in_noise);
  const double C = s.in * s.in - z2 * s.in_noise;
  const double root = B * B - A * C;
  if (A > 0.0 && root >= 0.0) {
    bar.low = std::clamp((B - std::sqrt(root)) / A, 0.0, 1.0);
    bar.high = std::clamp((B + std::sqrt(root)) / A, 0.0, 1.0);
  }
  bar.value = std::clamp(s.in / s.all, bar.low, bar.high);
  return bar;
}

ErrorBar mean_of(std::string name, const std::vector<ErrorBar>& shares) {
  ErrorBar bar{.name = std::move(name)};
  double below = 0.0, above = 0.0;
  const double weight = 1.0 / static_cast<double>(shares.size());
  for (const ErrorBar& s : shares) {
    bar.value += weight * s.value;
    below += std::pow(weight * (s.value - s.low), 2);
    above += std::pow(weight * (s.high - s.value), 2);
  }
  bar.low = bar.value - std::sqrt(below);
  bar.high = bar.value + std::sqrt(above);
  // MOVER (error_bars()) does not apply if a fraction has the bounds 0 and 1. Then the mean's
  // bounds are the means of the fractions' bounds.
  if (std::ranges::none_of(shares, [](const ErrorBar& s) { return s.low <= 0.0 && s.high >= 1.0; }))
    return bar;
  bar.low = bar.high = 0.0;
  for (const ErrorBar& s : shares) {
    bar.low += weight * s.low;
    bar.high += weight * s.high;
  }
  return bar;
}

}  // namespace

std::vector<ErrorBar> error_bars(const NoisyConfusion& c) {
  const auto n = static_cast<std::size_t>(c.classes);
  const double variance = c.noise_std * c.noise_std;
  const auto unit_rows = static_cast<double>(c.unit_rows);
  const auto others = static_cast<double>(c.classes - 1) * variance;
  ClassShare right{.in_noise = static_cast<double>(c.classes) * variance,
                   .out_noise = static_cast<double>(c.classes) * others};
  std::vector<ErrorBar> recalls, precisions;
  for (std::size_t k = 0; k < n; ++k) {
    ClassShare recall{.in = c.noisy[k * n + k], .in_noise = variance, .out_noise = others};
    ClassShare precision = recall;
    for (std::size_t j = 0; j < n; ++j) {
      recall.all += c.noisy[k * n + j];
      precision.all += c.noisy[j * n + k];
    }
    right.in += recall.in;
    right.all += recall.all;
    recalls.push_back(bar_of("recall of class " + std::to_string(k), recall, unit_rows));
    precisions.push_back(bar_of("precision of class " + std::to_string(k), precision, unit_rows));
  }
  std::vector<ErrorBar> bars = {bar_of("accuracy", right, unit_rows),
                                mean_of("balanced accuracy", recalls)};
  bars.insert(bars.end(), recalls.begin(), recalls.end());
  bars.insert(bars.end(), precisions.begin(), precisions.end());
  return bars;
}

std::vector<ErrorBar> error_bars(const NoisyErrors& e) {
  const double v = e.noise_std * e.noise_std;
  ErrorBar rmse{.name = "rmse", .value = e.width, .low = 0.0, .high = e.width};
  ErrorBar mae{.name = "mae", .value = e.width, .low = 0.0, .high = e.width};
  if (!(e.rows > 0.0)) return {rmse, mae};
  const double n = e.rows;
  const double square = std::clamp(e.squares / n, 0.0, 1.0);
  const double distance = std::clamp(e.distances / n, 0.0, 1.0);
  const double fourth = std::clamp(e.fourth_powers / n, square * square, 1.0);
  /// Returns the standard deviation of a mean, a noisy sum over rows divided by n, the noisy number
  /// of rows. It includes the random choice of rows and the noise of both numbers. mean,
  /// mean_square: mean of the summands and of their squares.
  const auto deviation = [&](double mean, double mean_square) {
    const double drawn =
        static_cast<double>(e.unit_rows) * std::fmax(0.0, mean_square - mean * mean) / n;
    return std::sqrt(drawn + v * (1.0 + mean * mean) / (n * n));
  };
  const double of_square = kZ * deviation(square, fourth);
  const double of_distance = kZ * deviation(distance, square);
  const auto in_unit = [&](double x) { return e.width * std::clamp(x, 0.0, 1.0); };
  rmse.value = in_unit(std::sqrt(square));
  rmse.low = in_unit(std::sqrt(std::fmax(0.0, square - of_square)));
  rmse.high = in_unit(std::sqrt(square + of_square));
  mae.value = in_unit(distance);
  mae.low = in_unit(distance - of_distance);
  mae.high = in_unit(distance + of_distance);
  return {rmse, mae};
}

}  // namespace cudp
