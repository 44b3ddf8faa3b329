#include "privacy/rdp/excess.hpp"

#include "privacy/math/constants.hpp"

namespace cudp::privacy {
namespace {

/// Returns log(1 + exp(x)), without overflow.
double softplus(double x) {
  return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

}  // namespace

double log_expm1(double x) {
  return x > 1.0 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
}

double log_moment(double log_excess, double magnitude) {
  const double value = softplus(log_excess);
  const double relative = 1e-12 + 8.0 * rounding * magnitude;
  return value + relative * std::fmin(1.0, value) + 4.0 * rounding * value;
}

double log_gap(double c, double l) {
  if (std::fabs(l) * std::fmax(c, 1.0) < 0.5) {
    // The Taylor series of e^(c l) - 1 begins with c l, that of c (e^(-l) - 1) with -c l. These two
    // terms would cancel, so the sum leaves them out.
    double power = c * l, mirrored = -l, sum = 0.0;
    for (int k = 2; k < 40; ++k) {
      power *= c * l / k;
      mirrored *= -l / k;
      const double term = power + c * mirrored;
      sum += term;
      if (std::fabs(power) + c * std::fabs(mirrored) < 0.01 * rounding * sum) break;
    }
    return std::log(sum);
  }
  if (c * l > 30.0) return c * l + std::log1p((c * std::expm1(-l) - 1.0) * std::exp(-c * l));
  if (l < -30.0) return std::log(c) - l + std::log1p((std::expm1(c * l) / c - 1.0) * std::exp(l));
  return std::log(std::expm1(c * l) + c * std::expm1(-l));
}

}  // namespace cudp::privacy
