#include "privacy/rdp/binomial.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cudp::privacy {
namespace {

/// Returns the probabilities P(0), ..., P(k) of a distribution, given the function ratio(j) = P(j +
/// 1) / P(j), which decreases with j. Starts at the most probable j, so that nothing overflows and
/// underflow does not matter. Ratio: type of the function ratio().
template <class Ratio>
std::vector<double> weights_from_ratios(std::uint64_t k, const Ratio& ratio) {
  std::vector<double> weights(k + 1, 0.0);
  std::uint64_t mode = 0;
  while (mode < k && ratio(mode) > 1.0) ++mode;
  weights[mode] = 1.0;
  for (std::uint64_t j = mode; j < k; ++j) weights[j + 1] = weights[j] * ratio(j);
  for (std::uint64_t j = mode; j > 0; --j) weights[j - 1] = weights[j] / ratio(j - 1);
  double sum = 0.0;
  std::vector<double> ascending = weights;
  std::sort(ascending.begin(), ascending.end());
  for (const double weight : ascending) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Returns log n! - ((n + 1/2) log n - n + log(2 pi) / 2), the error of Stirling's formula: 1/(12
/// n) - 1/(360 n^3) + ... Exact to 1e-16 from n = 16 on.
double stirling_error(double n) {
  if (n < 16.0)
    return std::lgamma(n + 1.0) - (n + 0.5) * std::log(n) + n -
           0.5 * std::log(2.0 * std::numbers::pi);
  const double s = 1.0 / (n * n);
  return (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0)))) / n;
}

/// Returns x log(x / m) + m - x, which is >= 0, without cancellation if x is near m.
double deviance(double x, double m) {
  const double d = (x - m) / m;
  if (std::fabs(d) > 0.1) return x * std::log(x / m) + m - x;
  // m ((1+d) log(1+d) - d) = m sum over i >= 2 of (-d)^i / (i (i-1))
  double sum = 0.0, power = d * d;
  for (int i = 2; i < 30; ++i, power *= -d) sum += power / (i * (i - 1.0));
  return m * sum;
}

/// Returns P(J = j), J ~ Binomial(n, q), for 0 < j < n. Source: Loader 2000, "Fast and accurate
/// computation of binomial probabilities". All large terms have the form of deviance(), so nothing
/// cancels.
double binomial_probability(double n, double q, double j) {
  const double log_p = stirling_error(n) - stirling_error(j) - stirling_error(n - j) -
                       deviance(j, n * q) - deviance(n - j, n * (1.0 - q));
  return std::exp(log_p) * std::sqrt(n / (2.0 * std::numbers::pi * j * (n - j)));
}

}  // namespace

std::vector<double> binomial_weights(std::uint64_t k, double q) {
  if (q == 0.0 || q == 1.0) {
    std::vector<double> weights(k + 1, 0.0);
    weights[q == 0.0 ? 0 : k] = 1.0;
    return weights;
  }
  const double odds = q / (1.0 - q);
  return weights_from_ratios(k, [=](std::uint64_t j) {
    return static_cast<double>(k - j) / static_cast<double>(j + 1) * odds;
  });
}

std::vector<double> hypergeometric_weights(std::uint64_t draws, std::uint64_t white,
                                           std::uint64_t k) {
  return weights_from_ratios(k, [=](std::uint64_t j) {
    if (j >= draws) return 0.0;
    return static_cast<double>(k - j) / static_cast<double>(j + 1) *
           (static_cast<double>(draws - j) / static_cast<double>(white - draws + j + 1));
  });
}

double binomial_tail(std::uint64_t n, double q, std::uint64_t min_count) {
  if (min_count == 0 || (q == 1.0 && min_count <= n)) return 1.0;
  if (min_count > n || q == 0.0) return 0.0;
  const auto size = static_cast<double>(n);
  const double odds = q / (1.0 - q);
  // Sums on the smaller side of the mean: the terms decrease geometrically from min_count on.
  const bool upper = static_cast<double>(min_count) > size * q;
  double term = 0.0, sum = 0.0;
  if (upper) {
    auto j = static_cast<double>(min_count);
    term = min_count == n ? std::exp(size * std::log(q)) : binomial_probability(size, q, j);
    for (; j <= size && term > 1e-17 * sum; ++j) {
      sum += term;
      term *= (size - j) / (j + 1.0) * odds;
    }
    // The remaining terms decrease at least as fast as the last ratio.
    return std::fmin(sum * (1.0 + 5e-10), 1.0);
  }
  auto j = static_cast<double>(min_count - 1);
  term = j == 0.0 ? std::exp(size * std::log1p(-q)) : binomial_probability(size, q, j);
  for (; j >= 0.0 && term > 1e-17 * sum; --j) {
    sum += term;
    term *= j / (size - j + 1.0) / odds;
  }
  return std::fmin((1.0 - sum * (1.0 - 5e-10)) * (1.0 + 1e-15), 1.0);
}

}  // namespace cudp::privacy
