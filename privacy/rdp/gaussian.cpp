#include "privacy/rdp/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

double upper_tail(double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); }

void check_mu(double mu) {
  if (!(mu >= 0.0 && mu < infinity))
    throw std::invalid_argument("mu: expected a finite number >= 0, found " + number(mu));
}

double gdp_mu(std::span<const Release> releases, std::uint64_t k) {
  double square = 0.0;
  for (const Release& release : releases) {
    check(release);
    if (releases_nothing(release)) continue;
    const auto count = static_cast<double>(release.count), size = static_cast<double>(k);
    if (const auto* m = std::get_if<Gaussian>(&release.mechanism)) {
      square += count * size * size / m->sigma / m->sigma;
    } else if (const auto* p = std::get_if<PoissonGaussian>(&release.mechanism); p && k == 1) {
      square += count * p->q * p->q * std::expm1(1.0 / p->sigma / p->sigma);
    } else {
      throw std::domain_error(
          "gdp: expected Gaussian steps, or Poisson-sampled ones for a group of "
          "1, found " +
          std::string(name(release.mechanism)) + " for a group of " + std::to_string(k));
    }
  }
  return std::sqrt(square);
}

}  // namespace

double gaussian_delta(double mu, double epsilon) {
  check_mu(mu);
  check_epsilon(epsilon);
  if (mu == 0.0) return 0.0;
  const double a = epsilon / mu - 0.5 * mu, b = epsilon / mu + 0.5 * mu;
  const double first = upper_tail(a);
  // second: e^epsilon times the upper tail at b. For b >= 30 the tail may underflow, so a lower
  // bound is used. The tail is at least b / (b^2 + 1) times the density at b, and e^epsilon times
  // that density is the density at a.
  const double second =
      b < 30.0 ? std::exp(epsilon) * upper_tail(b)
               : std::exp(-0.5 * a * a) / std::sqrt(2.0 * std::numbers::pi) * b / (b * b + 1.0);
  const double exponents = a * a + (b < 30.0 ? b * b + epsilon : 0.0);
  const double error = 4.0 * rounding * (8.0 + exponents) * (first + second);
  return std::clamp(first - second + error, std::numeric_limits<double>::min(), 1.0);
}

double gaussian_epsilon(double mu, double delta) {
  check_mu(mu);
  check_delta(delta);
  if (mu == 0.0 || gaussian_delta(mu, 0.0) <= delta) return 0.0;
  double low = 0.0, high = mu * (0.5 * mu + 1.0);
  while (gaussian_delta(mu, high) > delta) {
    low = high;
    high *= 2.0;
    if (!(high < infinity))
      throw std::domain_error("gaussian: no finite epsilon for mu " + number(mu) + ", delta " +
                              number(delta));
  }
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (gaussian_delta(mu, middle) <= delta ? high : low) = middle;
  }
  return high;
}

double gaussian_mu(double epsilon, double delta) {
  check_epsilon(epsilon);
  check_delta(delta);
  double low = 1e-12;
  double high = 1.0;
  if (gaussian_delta(low, epsilon) > delta)
    throw std::domain_error("gaussian: no noise reaches epsilon " + number(epsilon) + " at delta " +
                            number(delta));
  while (gaussian_delta(high, epsilon) <= delta) {
    low = high;
    high *= 2.0;
  }
  while (high - low > 1e-13 * high) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (gaussian_delta(middle, epsilon) <= delta ? low : high) = middle;
  }
  return low;
}

GdpEstimate gdp_estimate_epsilon(std::span<const Release> releases, double delta, std::uint64_t k) {
  const double mu = gdp_mu(releases, k);
  return {.mu = mu, .estimated_epsilon = gaussian_epsilon(mu, delta), .estimated_delta = delta};
}

GdpEstimate gdp_estimate_delta(std::span<const Release> releases, double epsilon, std::uint64_t k) {
  const double mu = gdp_mu(releases, k);
  return {.mu = mu, .estimated_epsilon = epsilon, .estimated_delta = gaussian_delta(mu, epsilon)};
}

}  // namespace cudp::privacy
