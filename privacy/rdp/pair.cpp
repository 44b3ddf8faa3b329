#include "privacy/rdp/pair.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <vector>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/excess.hpp"

namespace cudp::privacy {
namespace {

/// A mixture of Gaussians, sum over j of w_j N(c_j, 1), with weights w_j and centres c_j in units
/// of sigma.
class Mixture {
 public:
  Mixture(const ScalarMixture& mixture, double sigma) : weight_(mixture.weights) {
    for (const double centre : mixture.centres) centre_.push_back(centre / sigma);
    for (const double weight : weight_) log_weight_.push_back(std::log(weight));
    min_centre_ = *std::min_element(centre_.begin(), centre_.end());
    max_centre_ = *std::max_element(centre_.begin(), centre_.end());
  }

  /// Returns the log of the mixture's density divided by that of N(0, 1). Uses expm1, so that
  /// weights near 0 and centres near 0 keep their digits.
  double log_ratio(double x) const {
    double top = -infinity, sum = 0.0;
    for (std::size_t j = 0; j < centre_.size(); ++j) {
      const double w = centre_[j] * (x - 0.5 * centre_[j]);
      top = std::fmax(top, w);
      sum += weight_[j] * std::expm1(std::fmin(w, 600.0));
    }
    if (top < 600.0 && sum > -0.9) return std::log1p(sum);
    LogSum exact;
    for (std::size_t j = 0; j < centre_.size(); ++j)
      exact.add(log_weight_[j] + centre_[j] * (x - 0.5 * centre_[j]));
    return exact.value();
  }

  std::size_t size() const { return centre_.size(); }
  double centre(std::size_t j) const { return centre_[j]; }
  double log_weight(std::size_t j) const { return log_weight_[j]; }
  double min_centre() const { return min_centre_; }
  double max_centre() const { return max_centre_; }

 private:
  std::vector<double> centre_, weight_, log_weight_;
  double min_centre_ = 0.0, max_centre_ = 0.0;
};

/// The logarithm of A - 1 (value), where A = E[(first / second)^alpha] is the moment of two
/// densities, with the expectation over the second. magnitude: bound on the size of the exponents
/// that were added up, from which the rounding error follows.
struct LogExcess {
  double value = infinity;
  double magnitude = 0.0;
};

/// Returns an upper bound on A - 1, where A is the moment of order alpha of `first` against
/// `second`, without integration: the weighted mean of (moment - 1) over all pairs of a component
/// of `first` and one of `second`. Two Gaussians with standard deviation 1 and centres at distance
/// d have the moment e^(alpha (alpha - 1) d^2 / 2).
LogExcess excess_by_components(const Mixture& first, const Mixture& second, double alpha) {
  LogSum sum;
  double magnitude = 0.0;
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::size_t j = 0; j < second.size(); ++j) {
      const double d = first.centre(i) - second.centre(j), x = 0.5 * alpha * (alpha - 1.0) * d * d;
      if (x == infinity) return {};
      if (x == 0.0) continue;
      const double log_weight = first.log_weight(i) + second.log_weight(j);
      sum.add(log_weight + log_expm1(x));
      magnitude = std::fmax(magnitude, x - log_weight);
    }
  return {sum.value(), magnitude};
}

/// Returns A - 1, A the moment of order alpha of `first` against `second`, by numerical
/// integration; infinite if it is not accurate. The step follows from the strip |Im x| < pi /
/// spread, in which neither mixture has a zero; spread is the largest distance between centres. The
/// integrand is largest at alpha times a centre of `first` minus (alpha - 1) times one of `second`,
/// or at a centre, and negligible, e^-50, 10 standard deviations further out.
LogExcess excess_by_integral(const Mixture& first, const Mixture& second, double alpha) {
  constexpr double pi = std::numbers::pi, reach = 10.0;
  const double spread =
      std::fmax(first.max_centre() - first.min_centre(), second.max_centre() - second.min_centre());
  const double strip = std::fmin(pi / spread, 5.5);  // infinity if there is no spread
  const double h = 2.0 * pi * strip / (15.4 + 0.5 * strip * strip);
  const double c = alpha - 1.0;
  const double from = std::fmin(std::fmin(first.min_centre(), second.min_centre()),
                                alpha * first.min_centre() - c * second.max_centre()) -
                      reach;
  const double to = std::fmax(std::fmax(first.max_centre(), second.max_centre()),
                              alpha * first.max_centre() - c * second.min_centre()) +
                    reach;
  const std::optional<double> integral = log_integral(
      [&](double x) {
        const double base = second.log_ratio(x), l = first.log_ratio(x) - base;
        return l == 0.0 ? -infinity : log_bernoulli_gap(alpha, l) + base - 0.5 * x * x;
      },
      from, to, h);
  if (!integral) return {};
  const double edge = std::fmax(std::fabs(from), std::fabs(to));
  return {*integral - 0.5 * std::log(2.0 * pi), 2.0 * edge * edge};
}

LogExcess excess_of(const GaussianPair& pair, double alpha) {
  const double sigma = std::fmin(pair.sigma, 1e25);  // the divergence falls with sigma
  const Mixture first(pair.first, sigma), second(pair.second, sigma);
  const LogExcess bound = excess_by_components(first, second, alpha);
  if (first.size() == 1 && second.size() == 1) return bound;  // the bound is exact
  const LogExcess integral = excess_by_integral(first, second, alpha);
  return integral.value < bound.value ? integral : bound;
}

}  // namespace

double rdp_of_pairs(std::span<const GaussianPair> pairs, double alpha) {
  check_order(alpha);
  LogSum sum;
  double magnitude = 0.0;
  for (const GaussianPair& pair : pairs) {
    if (!(pair.probability > 0.0)) continue;
    const LogExcess excess = excess_of(pair, alpha);
    if (excess.value == infinity) return infinity;
    sum.add(std::log(pair.probability) + excess.value);
    // Each weight has a relative error of up to as many roundings as its mixture has weights.
    const double weights =
        alpha * static_cast<double>(pair.first.weights.size() + pair.second.weights.size());
    magnitude = std::fmax(magnitude, excess.magnitude + weights);
  }
  return log_moment(sum.value(), magnitude) / (alpha - 1.0) * (1.0 + 4.0 * rounding);
}

}  // namespace cudp::privacy
