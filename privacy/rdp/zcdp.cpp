#include "privacy/rdp/zcdp.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "privacy/math/boundary.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

void check_rho(double rho) {
  if (!(rho >= 0.0 && rho < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("rho: expected a finite number >= 0, found " + number(rho));
}

}  // namespace

double epsilon_from_zcdp(double rho, double delta) {
  check_rho(rho);
  check_delta(delta);
  if (rho == 0.0) return 0.0;
  // With s = alpha - 1 > 0, epsilon is (1+s) rho + log(s / (1+s)) - log(delta (1+s)) / s. Its
  // derivative has the sign of s^2 rho + log(delta (1+s)), which increases with s: one minimum,
  // found by bisection over log s. (s is used because near s = 0 alpha itself has no digits left.)
  // Any s > 0 gives an upper bound, so the search needs no precision.
  const double log_delta = std::log(delta);
  double low = -400.0, high = -log_delta;  // log s; at s = 1/delta the sign is positive
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high), s = std::exp(middle);
    (s * s * rho + log_delta + std::log1p(s) < 0.0 ? low : high) = middle;
  }
  const double s = std::exp(high);
  const double divergence = (1.0 + s) * rho, shift = -std::log1p(1.0 / s);
  const double tail = -(log_delta + std::log1p(s)) / s;
  const double epsilon = divergence + shift + tail +
                         8.0 * rounding * (divergence + std::fabs(shift) + std::fabs(tail));
  return std::fmax(epsilon, 0.0);
}

double epsilon_from_zcdp_classical(double rho, double delta) {
  check_rho(rho);
  check_delta(delta);
  return (rho + 2.0 * std::sqrt(rho) * std::sqrt(-std::log(delta))) * (1.0 + 8.0 * rounding);
}

double zcdp_for(double epsilon, double delta) {
  check_delta(delta);
  if (!(epsilon > 0.0 && epsilon < 1e100))
    throw std::invalid_argument("epsilon: expected a number in (0, 1e100), found " +
                                number(epsilon));
  // Epsilon increases with rho. Its logarithm is nearly linear in log rho.
  const auto excess = [&](double log_rho) {
    return std::log(std::fmax(epsilon_from_zcdp(std::exp(log_rho), delta), 1e-300) / epsilon);
  };
  double high = std::log(epsilon), low = high - 2.0;
  while (!(excess(high) > 0.0)) high += 2.0;
  while (excess(low) > 0.0) low -= 3.0;
  return std::exp(safe_boundary(excess, high, low, 1e-10)) * (1.0 - 1e-14);
}

double zcdp_of_gaussian(double sigma) {
  check(Gaussian{sigma});
  return 0.5 / sigma / sigma * (1.0 + 4.0 * rounding);
}

double zcdp_of_pure(double epsilon) {
  if (!(epsilon >= 0.0))
    throw std::invalid_argument("epsilon: expected a number >= 0, found " + number(epsilon));
  return epsilon * std::tanh(0.5 * epsilon) * (1.0 + 8.0 * rounding);
}

}  // namespace cudp::privacy
