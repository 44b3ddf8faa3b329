#include "privacy/rdp/sampled_gaussian.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "privacy/math/constants.hpp"
#include "privacy/math/log_sum.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/rdp/excess.hpp"
#include "privacy/text/number.hpp"

// With mu0 = N(0, sigma^2) and mu = (1 - q) mu0 + q N(1, sigma^2), the divergence is log(A) /
// (alpha - 1) for A = E[(1 + u)^alpha], where z ~ mu0 and u = mu(z) / mu0(z) - 1 = q (exp((2 z - 1)
// / (2 sigma^2)) - 1). excess.hpp explains how A is kept from rounding to 1.

namespace cudp::privacy {
namespace {

/// Returns log A at an integer order, where A = E[(1 + u)^alpha] with u = q (exp((2 z - 1) / (2
/// sigma^2)) - 1), z ~ N(0, sigma^2). A - 1 is the sum over m = 2..alpha of C(alpha, m)
/// (1-q)^(alpha-m) q^m (e^x - 1) with x = m (m-1) / (2 sigma^2). The binomial probabilities sum to
/// 1, which removes the 1 from A; the terms of m = 0 and 1 are 0.
double log_gaussian_moment(double q, double sigma, std::uint64_t alpha) {
  const double log_q = std::log(q), log_p = std::log1p(-q);
  const double curvature = 0.5 / sigma / sigma;
  const auto n = static_cast<double>(alpha);
  LogSum sum;
  double log_binomial = std::log(n), carry = 0.0, top = -infinity, magnitude = 0.0;
  for (std::uint64_t i = 2; i <= alpha; ++i) {
    const auto m = static_cast<double>(i);
    // Kahan's summation keeps the thousandth binomial as accurate as the second.
    const double step = std::log((n - m + 1.0) / m) - carry;
    const double next = log_binomial + step;
    carry = (next - log_binomial) - step;
    log_binomial = next;

    const double x = m * (m - 1.0) * curvature;
    if (x == infinity) return infinity;
    const double term = log_binomial + m * log_q + (n - m) * log_p + log_expm1(x);
    sum.add(term);
    if (term > top) {
      top = term;
      magnitude = std::fabs(log_binomial) - m * log_q - (n - m) * log_p + x;
    }
  }
  return log_moment(sum.value(), magnitude);
}

/// Returns log A at any order, where A = E[(1 + u)^alpha] with u = q (exp((2 z - 1) / (2 sigma^2))
/// - 1), z ~ N(0, sigma^2), by the trapezoidal rule over x = z / sigma. Returns nullopt if the
/// result is not accurate.
///
/// For a function analytic in the strip |Im x| < a the rule with step h has a relative error of
/// about e^(a^2/2 - 2 pi a / h), because the normal density grows as e^(y^2 / 2) at a distance y
/// from the real line. (1 + u)^alpha has branch points at Im x = +-pi sigma, so a = min(pi sigma,
/// 5), and h is chosen for an error of e^-40. The sums over even and over odd nodes must then agree
/// to about e^-20. If they agree to t, the whole sum is accurate to t^2 e^(-a^2/2), which must be
/// at most 1e-12.
///
/// The integrand decreases like e^(-x^2 / 2) to the left of 0 and to the right of alpha / sigma,
/// the centre of the density times e^(alpha x / sigma). 10 standard deviations further it is e^-50.
std::optional<double> log_moment_by_quadrature(double q, double sigma, double alpha) {
  constexpr double pi = std::numbers::pi, reach = 10.0, digits = 40.0, max_nodes = 1e5;
  const double strip = std::fmin(pi * sigma, 5.0);
  const double h = 2.0 * pi * strip / (digits + 0.5 * strip * strip);
  const double first = -reach, last = std::fmax(alpha, 2.0) / sigma + reach;
  const double intervals = std::ceil((last - first) / h);
  if (!(intervals <= max_nodes)) return std::nullopt;

  LogSum halves[2];
  for (int i = 0; i <= static_cast<int>(intervals); ++i) {
    const double x = first + i * h;
    const double w = x / sigma - 0.5 / sigma / sigma;
    // log(1 + u); above 700 e^w overflows, and the ratio is q e^w.
    const double l = w < 700.0 ? std::log1p(q * std::expm1(w)) : w + std::log(q);
    if (l != 0.0) halves[i % 2].add(log_bernoulli_gap(alpha, l) - 0.5 * x * x);
  }
  const double even = halves[0].value(), odd = halves[1].value();
  if (!(std::fabs(even - odd) <= 1e-6 * std::exp(0.25 * strip * strip))) return std::nullopt;
  LogSum sum;
  sum.add(even);
  sum.add(odd);
  const double log_excess = sum.value() + std::log(h / std::sqrt(2.0 * pi));
  return log_moment(log_excess, 0.5 * last * last + alpha * last / sigma);
}

/// Returns an upper bound on log A at a fractional order, where A = E[(1 + u)^alpha] with u = q
/// (exp((2 z - 1) / (2 sigma^2)) - 1), z ~ N(0, sigma^2). log A is convex in alpha (Lyapunov), so
/// linear interpolation between the neighbouring integer orders bounds it from above. log A = 0 at
/// alpha = 1.
double log_moment_by_convexity(double q, double sigma, double alpha) {
  const double below = std::floor(alpha), share = alpha - below;
  const auto n = static_cast<std::uint64_t>(below);
  const double left = n == 1 ? 0.0 : log_gaussian_moment(q, sigma, n);
  const double right = log_gaussian_moment(q, sigma, n + 1);
  return ((1.0 - share) * left + share * right) * (1.0 + 4.0 * rounding);
}

double log_moment_fractional(double q, double sigma, double alpha) {
  const std::optional<double> integral = log_moment_by_quadrature(q, sigma, alpha);
  return integral ? *integral : log_moment_by_convexity(q, sigma, alpha);
}

}  // namespace

double rdp_sampled_gaussian(double q, double sigma, double alpha) {
  check(PoissonGaussian{.q = q, .sigma = sigma});
  if (!(alpha > 1.0 && alpha <= largest_order))
    throw std::invalid_argument("order: expected a Renyi order in (1, 1e6], found " +
                                number(alpha));
  if (q == 0.0) return 0.0;
  // The divergence increases with q and decreases with sigma. Moving both into the range where
  // double can represent the square of every quantity below gives a bound for the true ones.
  q = std::fmax(q, 1e-100);
  sigma = std::fmin(sigma, 1e25);
  const double gaussian = 0.5 * alpha / sigma / sigma * (1.0 + 8.0 * rounding);
  if (q == 1.0) return gaussian;
  const bool integer = alpha == std::floor(alpha);
  const double log_a = integer ? log_gaussian_moment(q, sigma, static_cast<std::uint64_t>(alpha))
                               : log_moment_fractional(q, sigma, alpha);
  const double rdp = log_a / (alpha - 1.0) * (1.0 + 4.0 * rounding);
  return std::fmin(rdp, gaussian);
}

}  // namespace cudp::privacy
