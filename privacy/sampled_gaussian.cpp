#include "privacy/sampled_gaussian.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "privacy/log_sum.hpp"
#include "privacy/number.hpp"
#include "privacy/phase.hpp"

// With mu0 = N(0, sigma^2) and mu = (1 - q) mu0 + q N(1, sigma^2), the divergence is
// log(A) / (alpha - 1) for A = E[(1 + u)^alpha], where z ~ mu0 and
// u = mu(z) / mu0(z) - 1 = q (exp((2 z - 1) / (2 sigma^2)) - 1).
//
// A is 1 + 1e-20 where q is small and sigma large, so that 1 + it would round to 1 and the
// divergence to 0. Both functions below therefore compute the excess A - 1, as a sum of positive
// terms, in log space: E[u] = 0 turns it into E[(1 + u)^alpha - 1 - alpha u], and Bernoulli's
// inequality says that this integrand is nowhere negative. Nothing cancels.

namespace cudp::privacy {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding = std::numeric_limits<double>::epsilon();

/// log(exp(x) - 1) for x > 0.
double log_expm1(double x) {
  return x > 1.0 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
}

/// log(1 + exp(x))
double softplus(double x) {
  return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// log A from log(A - 1), rounded up. `magnitude` is the size of the exponents that made up
/// log(A - 1): an exponent of size m is known to m roundings, and so is its exponential,
/// relatively. d log A = dA / A is at most the relative error of A - 1 times min(1, log A).
double log_moment(double log_excess, double magnitude) {
  const double value = softplus(log_excess);
  const double relative = 1e-12 + 8.0 * rounding * magnitude;
  return value + relative * std::fmin(1.0, value) + 4.0 * rounding * value;
}

/// log A at an integer order: the sum over m of C(alpha, m) (1-q)^(alpha-m) q^m (e^x - 1) with
/// x = m (m-1) / (2 sigma^2). The binomial probabilities sum to 1, which takes the 1 from A; the
/// terms of m = 0 and 1 vanish.
double log_moment_integer(double q, double sigma, std::uint64_t alpha) {
  const double log_q = std::log(q), log_p = std::log1p(-q);
  const double curvature = 0.5 / sigma / sigma;
  const auto n = static_cast<double>(alpha);
  LogSum sum;
  double log_binomial = std::log(n), carry = 0.0, top = -infinity, magnitude = 0.0;
  for (std::uint64_t i = 2; i <= alpha; ++i) {
    const auto m = static_cast<double>(i);
    // Kahan's summation: the thousandth binomial is as good as the second.
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

/// log of (1 + u)^alpha - 1 - alpha u, given l = log(1 + u): that is
/// e^l (e^(c l) - 1 + c (e^(-l) - 1)) with c = alpha - 1.
double log_bernoulli_gap(double alpha, double l) {
  const double c = alpha - 1.0;
  if (std::fabs(l) * std::fmax(c, 1.0) < 0.5) {
    // Both brackets start with c l: the Taylor series leaves it out instead of cancelling it.
    double power = c * l, mirrored = -l, sum = 0.0;
    for (int k = 2; k < 40; ++k) {
      power *= c * l / k;
      mirrored *= -l / k;
      const double term = power + c * mirrored;
      sum += term;
      if (std::fabs(power) + c * std::fabs(mirrored) < 0.01 * rounding * sum) break;
    }
    return l + std::log(sum);
  }
  if (c * l > 30.0) return l + c * l + std::log1p((c * std::expm1(-l) - 1.0) * std::exp(-c * l));
  return l + std::log(std::expm1(c * l) + c * std::expm1(-l));
}

/// log A at any order, by the trapezoidal rule over x = z / sigma.
///
/// For a function analytic in the strip |Im x| < a the rule with step h is wrong by about
/// e^(a^2/2 - 2 pi a / h), relatively: the normal density grows as e^(y^2 / 2) off the real line.
/// (1 + u)^alpha has branch points at Im x = +-pi sigma, so a = min(pi sigma, 5), and h is chosen
/// for e^-40. The rule on every second node must then agree with the other half to about e^-20; if
/// they agree to t, the whole is good to t^2 e^(-a^2/2), and this is asked to be 1e-12. Where it is
/// not, an assumption is broken and the value is not used.
///
/// The tails: the integrand falls like e^(-x^2 / 2) left of 0 and right of alpha / sigma, where the
/// factor e^(alpha x / sigma) moves its mass to; 10 standard deviations beyond are e^-50.
std::optional<double> log_moment_by_quadrature(double q, double sigma, double alpha) {
  constexpr double pi = std::numbers::pi, reach = 10.0, digits = 40.0, most_nodes = 1e5;
  const double strip = std::fmin(pi * sigma, 5.0);
  const double h = 2.0 * pi * strip / (digits + 0.5 * strip * strip);
  const double first = -reach, last = std::fmax(alpha, 2.0) / sigma + reach;
  const double intervals = std::ceil((last - first) / h);
  if (!(intervals <= most_nodes)) return std::nullopt;

  LogSum halves[2];
  for (int i = 0; i <= static_cast<int>(intervals); ++i) {
    const double x = first + i * h;
    const double w = x / sigma - 0.5 / sigma / sigma;
    // log(1 + u); past 700 e^w overflows, and q e^w is all there is to the ratio.
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

/// log A is convex in alpha (Lyapunov) and 0 at alpha = 1, so that the chord between the
/// neighbouring integer orders lies above it.
double log_moment_by_convexity(double q, double sigma, double alpha) {
  const double below = std::floor(alpha), share = alpha - below;
  const auto n = static_cast<std::uint64_t>(below);
  const double left = n == 1 ? 0.0 : log_moment_integer(q, sigma, n);
  const double right = log_moment_integer(q, sigma, n + 1);
  return ((1.0 - share) * left + share * right) * (1.0 + 4.0 * rounding);
}

double log_moment_fractional(double q, double sigma, double alpha) {
  const std::optional<double> integral = log_moment_by_quadrature(q, sigma, alpha);
  return integral ? *integral : log_moment_by_convexity(q, sigma, alpha);
}

}  // namespace

double rdp_sampled_gaussian(double q, double sigma, double alpha) {
  check(Phase{.q = q, .sigma = sigma, .steps = 1});
  if (!(alpha > 1.0 && alpha <= largest_order))
    throw std::invalid_argument("order: expected a Renyi order in (1, 1e6], found " +
                                number(alpha));
  if (q == 0.0) return 0.0;
  // The divergence grows with q and falls with sigma: moving them to where double can hold the
  // square of everything below gives a bound for the true ones.
  q = std::fmax(q, 1e-100);
  sigma = std::fmin(sigma, 1e25);
  const double gaussian = 0.5 * alpha / sigma / sigma * (1.0 + 8.0 * rounding);
  if (q == 1.0) return gaussian;
  const bool integer = alpha == std::floor(alpha);
  const double log_a = integer ? log_moment_integer(q, sigma, static_cast<std::uint64_t>(alpha))
                               : log_moment_fractional(q, sigma, alpha);
  const double rdp = log_a / (alpha - 1.0) * (1.0 + 4.0 * rounding);
  return std::fmin(rdp, gaussian);
}

}  // namespace cudp::privacy
