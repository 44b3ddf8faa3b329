#include "privacy/rdp/fixed_size.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "privacy/math/constants.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/rdp/excess.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Returns the logarithm of the moment that Wang, Balle, Kasiviswanathan 2019, Theorem 9, bounds: 1
/// + sum over j = 2..alpha of C(alpha, j) q^j zeta_j, with r = 1 / sigma^2, zeta_2 = min(4 (e^r -
/// 1), 2 e^r), and zeta_j = 2 e^(j (j-1) r / 2) for j > 2.
double log_moment_wang(double q, double sigma, std::uint64_t alpha) {
  const double log_q = std::log(q), r = 1.0 / sigma / sigma;
  const auto n = static_cast<double>(alpha);
  LogSum sum;
  double log_binomial = std::log(n), magnitude = 0.0;
  for (std::uint64_t i = 2; i <= alpha; ++i) {
    const auto j = static_cast<double>(i);
    log_binomial += std::log((n - j + 1.0) / j);
    const double x = 0.5 * j * (j - 1.0) * r;
    if (x == infinity) return infinity;
    double log_zeta = std::log(2.0) + x;
    if (i == 2) log_zeta = std::fmin(log_zeta, std::log(4.0) + log_expm1(x));
    sum.add(log_binomial + j * log_q + log_zeta);
    // log_binomial is a sum of j logarithms, so the bound on its rounding errors grows with j.
    magnitude = std::fmax(magnitude, (j + 1.0) * log_binomial - j * log_q + x);
  }
  return log_moment(sum.value(), magnitude);
}

double divergence_wang(double q, double sigma, double alpha) {
  const double below = std::floor(alpha), share = alpha - below;
  const auto n = static_cast<std::uint64_t>(below);
  double log_a = n == 1 ? 0.0 : log_moment_wang(q, sigma, n);
  if (share > 0.0) log_a = (1.0 - share) * log_a + share * log_moment_wang(q, sigma, n + 1);
  return log_a / (alpha - 1.0) * (1.0 + 8.0 * rounding);
}

/// Returns log A, where A is the moment of order alpha of a pair of distributions whose delta at
/// every epsilon, in both directions, is that of the subsampled mechanism. Let P = N(1, sigma^2), Q
/// = N(0, sigma^2), and x = 1 - q + q dP/dQ. At e^epsilon = t >= 1 subsampling has delta(t) =
/// E_Q[max(x - t, 0)]. The moment is the integral of alpha (alpha - 1) t^(alpha - 2) delta(t);
/// values t < 1 are mirrored to 1 / t. That gives
///   A - 1 = E_Q[(x^alpha - 1) (1 - x^(1 - alpha)); x > 1].
/// x > 1 means z > 1/2, for z ~ Q. With z = 1/2 + sigma y and y = log(1 + e^s) the integral is over
/// all real s. As a function of complex y, x is 0 at Im y = +-pi sigma. y is singular at Im s =
/// +-pi. Both limit the strip in which the integrand is analytic. Returns nullopt if the numerical
/// integral is not accurate.
std::optional<double> log_moment_by_integral(double q, double sigma, double alpha) {
  constexpr double pi = std::numbers::pi, reach = 10.0;
  const double strip = std::fmin(pi * sigma, 2.5), offset = 0.5 / sigma;
  const double h = 2.0 * pi * strip / (15.4 + 0.5 * strip * strip);
  // Towards s = -infinity the integrand decreases like y^3, and no term is as large as that of y =
  // 1.
  const double first = -15.0 + std::fmin(0.0, std::log(sigma));
  const double last = alpha / sigma + reach;
  const std::optional<double> integral = log_integral(
      [&](double s) {
        const double y = s > 0.0 ? s + std::log1p(std::exp(-s)) : std::log1p(std::exp(s));
        const double w = y / sigma;
        const double l = w < 700.0 ? std::log1p(q * std::expm1(w)) : w + std::log(q);
        if (!(l > 0.0)) return -infinity;
        const double c = alpha - 1.0, z = y + offset;
        const double log_falling = std::log(-std::expm1(-c * l));
        const double log_derivative =
            s > 0.0 ? -std::log1p(std::exp(-s)) : s - std::log1p(std::exp(s));
        return log_expm1(alpha * l) + log_falling + log_derivative - 0.5 * z * z;
      },
      first, last, h);
  if (!integral) return std::nullopt;
  const double edge = last + offset;
  return log_moment(*integral - 0.5 * std::log(2.0 * pi), edge * edge + alpha * last / sigma);
}

void check_arguments(double q, double sigma, double alpha) {
  check(PoissonGaussian{.q = q, .sigma = sigma});
  if (!(alpha > 1.0 && alpha <= largest_order))
    throw std::invalid_argument("order: expected a Renyi order in (1, 1e6], found " +
                                number(alpha));
}

double plain_gaussian(double sigma, double alpha) {
  return 0.5 * alpha / sigma / sigma * (1.0 + 8.0 * rounding);
}

}  // namespace

double rdp_fixed_size_wang(double q, double sigma, double alpha) {
  check_arguments(q, sigma, alpha);
  if (q == 0.0) return 0.0;
  sigma = std::fmin(sigma, 1e25);
  const double gaussian = plain_gaussian(sigma, alpha);
  if (q == 1.0) return gaussian;
  return std::fmin(gaussian, divergence_wang(std::fmax(q, 1e-100), sigma, alpha));
}

double rdp_fixed_size(double q, double sigma, double alpha) {
  check_arguments(q, sigma, alpha);
  if (q == 0.0) return 0.0;
  sigma = std::fmin(sigma, 1e25);
  const double gaussian = plain_gaussian(sigma, alpha);
  if (q == 1.0) return gaussian;
  const double rate = std::fmax(q, 1e-100);
  const std::optional<double> log_a = log_moment_by_integral(rate, sigma, alpha);
  if (!log_a) return rdp_fixed_size_wang(q, sigma, alpha);
  return std::fmin(gaussian, *log_a / (alpha - 1.0) * (1.0 + 4.0 * rounding));
}

}  // namespace cudp::privacy
