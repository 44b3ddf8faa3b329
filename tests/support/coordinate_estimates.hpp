#pragma once
// Means and deviations of coordinates as AdaCliP estimates them from released values, computed in
// double, with bounds on the error of the float32 computation. The variance of a coordinate is the
// difference of two squares, which cancel if the noise is large. The error is then no fixed share
// of the result, so it is tracked for each coordinate and each step.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace cudp {

/// Relative rounding error of float32: half a unit in the last place.
inline constexpr double kRounding = 0x1p-24;

/// Bounds on the errors of a step's scales and centres.
struct CoordinateErrors {
  std::vector<double> scale_shares;  ///< relative error of each scale
  std::vector<double> centres;
};

/// Numbers of a step from which m and s are updated.
struct CoordinateStep {
  double beta1, beta2;
  double min_variance, max_variance;
  double noise;     ///< standard deviation of a release / expected batch, in units of the scale
  double examples;  ///< factor on a variance: b, or 1
};

class CoordinateEstimates {
 public:
  using Values = std::vector<double>;

  CoordinateEstimates() = default;
  CoordinateEstimates(std::size_t size, float first_deviation)
      : mean(size, 0.0f),
        deviation(size, first_deviation),
        mean_errors_(size, 0.0),
        deviation_errors_(size, 0.0) {}

  std::vector<float> mean, deviation;

  /// Returns bounds on the errors of scale_j = sqrt(s_j sum of s) and of the centre: m, multiplied
  /// by a factor if |m / scale| is too large.
  CoordinateErrors errors(const Values& scale, const Values& centre) const {
    double sum = 0.0;
    double sum_error = 0.0;
    for (std::size_t j = 0; j < scale.size(); ++j) {
      sum += static_cast<double>(deviation[j]);
      sum_error += deviation_errors_[j];
    }
    CoordinateErrors off{.scale_shares = Values(scale.size()), .centres = mean_errors_};
    double square = 0.0;
    double square_error = 0.0;
    for (std::size_t j = 0; j < scale.size(); ++j) {
      const double share = deviation_errors_[j] / static_cast<double>(deviation[j]);
      off.scale_shares[j] = 0.5 * (share + sum_error / sum) + 4.0 * kRounding;
      const double ratio = std::fabs(centre[j]) / scale[j];
      square += ratio * ratio;
      square_error += ratio * (ratio * off.scale_shares[j] + mean_errors_[j] / scale[j]);
    }
    const double length_share = square > 0.0 ? square_error / square : 0.0;
    for (std::size_t j = 0; j < scale.size(); ++j)
      off.centres[j] += std::fabs(centre[j]) * (length_share + 2.0 * kRounding);
    return off;
  }

  /// Updates m, s and the error bounds with the gradient g, whose errors are at most g_errors:
  ///   m <- beta1 m + (1 - beta1) g, s^2 <- beta2 s^2 + (1 - beta2) clamp(v),
  ///   v = ((g - m)^2 - (scale noise)^2) examples.
  void follow(const CoordinateStep& step, const Values& scale, const Values& centre,
              const CoordinateErrors& off, const Values& g, const Values& g_errors) {
    for (std::size_t j = 0; j < g.size(); ++j) {
      const double m = step.beta1 * centre[j] + (1.0 - step.beta1) * g[j];
      const double sizes = std::fabs(g[j]) + std::fabs(centre[j]);
      const double away = g[j] - m;
      const double away_error =
          step.beta1 * (g_errors[j] + off.centres[j]) + 3.0 * kRounding * sizes;
      const double noise = std::pow(scale[j] * step.noise, 2);
      const double v = (away * away - noise) * step.examples;
      const double v_error =
          step.examples * ((2.0 * std::fabs(away) + away_error) * away_error +
                           2.0 * noise * (off.scale_shares[j] + 2.0 * kRounding)) +
          2.0 * kRounding * std::fabs(v);
      const auto clamped = [&](double x) {
        return std::fmin(std::fmax(x, step.min_variance), step.max_variance);
      };
      const double s = deviation[j];
      const double s_after = std::sqrt(step.beta2 * s * s + (1.0 - step.beta2) * clamped(v));
      const double between = clamped(v + v_error) - clamped(v - v_error);
      deviation_errors_[j] =
          (2.0 * step.beta2 * s * deviation_errors_[j] + (1.0 - step.beta2) * between) / s_after +
          3.0 * kRounding * s_after;
      mean_errors_[j] =
          step.beta1 * off.centres[j] + (1.0 - step.beta1) * g_errors[j] + 2.0 * kRounding * sizes;
      mean[j] = static_cast<float>(m);
      deviation[j] = static_cast<float>(s_after);
    }
  }

 private:
  Values mean_errors_, deviation_errors_;
};

}  // namespace cudp
