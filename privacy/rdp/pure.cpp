#include "privacy/rdp/pure.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/excess.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

void check_loss(double epsilon) {
  if (!(epsilon >= 0.0 && epsilon < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("epsilon: expected a finite number >= 0, found " + number(epsilon));
}

/// Returns log sinh(y), y > 0.
double log_sinh(double y) {
  return y > 1.0 ? y - std::log(2.0) + std::log1p(-std::exp(-2.0 * y)) : std::log(std::sinh(y));
}

double log_cosh(double y) { return y - std::log(2.0) + std::log1p(std::exp(-2.0 * y)); }

/// Returns log(sinh(y) / y), y >= 0: y^2/6 - y^4/180 + ...
double log_sinhc(double y) {
  if (y > 1.0) return y - std::log(2.0 * y) + std::log1p(-std::exp(-2.0 * y));
  double term = 1.0, sum = 0.0;  // sinh(y) / y - 1
  for (int k = 1; k < 14; ++k) {
    term *= y * y / (2.0 * k * (2.0 * k + 1.0));
    sum += term;
  }
  return std::log1p(sum);
}

}  // namespace

// Proposition 6 gives A = (alpha e^((alpha-1) e) + (alpha-1) e^(-alpha e)) / (2 alpha - 1) with
// e = 1 / scale. Its excess is alpha / (2 alpha - 1) times a gap: e^(c e) - 1 + c/alpha (e^(-alpha
// e) - 1).
double rdp_laplace(double scale, double alpha) {
  check_order(alpha);
  if (!(scale > 0.0 && scale < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("scale: expected a finite noise scale > 0, found " + number(scale));
  // The divergence decreases with the scale. Beyond this scale the square of the loss would
  // underflow.
  const double loss = 1.0 / std::fmin(scale, 1e100), c = alpha - 1.0;
  if (!(alpha * loss < 1e300)) return loss * (1.0 + 4.0 * rounding);
  const double log_excess =
      std::log(alpha / (2.0 * alpha - 1.0)) + log_gap(c / alpha, alpha * loss);
  const double rdp = log_moment(log_excess, alpha * loss) / c * (1.0 + 4.0 * rounding);
  return std::fmin(rdp, loss * (1.0 + 4.0 * rounding));
}

// Randomised response has A = cosh((alpha - 1/2) e) / cosh(e / 2), and excess
// 2 sinh(alpha e / 2) sinh((alpha - 1) e / 2) / cosh(e / 2).
double rdp_pure(double epsilon, double alpha) {
  check_order(alpha);
  check_loss(epsilon);
  if (epsilon == 0.0) return 0.0;
  const double loss = std::fmax(epsilon, 1e-100), c = alpha - 1.0;
  if (!(alpha * loss < 1e300)) return epsilon * (1.0 + 4.0 * rounding);
  const double log_excess = std::log(2.0) + log_sinh(0.5 * alpha * loss) +
                            log_sinh(0.5 * c * loss) - log_cosh(0.5 * loss);
  const double rdp = log_moment(log_excess, 2.0 * alpha * loss) / c * (1.0 + 4.0 * rounding);
  return std::fmin(rdp, loss * (1.0 + 4.0 * rounding));
}

// The worst case has two outcomes with losses t and t - e, which have probabilities p and 1 - p
// under P. The likelihood ratios must average to 1, so p = (1 - e^(t-e)) / (1 - e^-e). That leaves
// A(t) = p e^((alpha-1) t) + (1 - p) e^((alpha-1)(t-e)). As a function of r = e^t this is
// r^(alpha-1) times a decreasing line, greatest at (alpha-1) (1 - e^(-alpha e)) = alpha r (e^-e -
// e^(-alpha e)). There, with g(y) = log(sinh(y) / y),
//   log A = alpha g(alpha e / 2) - (alpha - 1) g((alpha - 1) e / 2) - g(e / 2).
// A bound on the rounding error of these subtractions is added. If the sum exceeds one of two
// simpler bounds, alpha e^2 / 8 and e, the smaller of these two is returned.
double rdp_bounded_range(double epsilon, double alpha) {
  check_order(alpha);
  check_loss(epsilon);
  const double c = alpha - 1.0, zcdp = 0.125 * alpha * epsilon * epsilon;
  const double simple = std::fmin(zcdp, epsilon) * (1.0 + 4.0 * rounding);
  const double a = alpha * log_sinhc(0.5 * alpha * epsilon);
  const double b = c * log_sinhc(0.5 * c * epsilon);
  const double rest = log_sinhc(0.5 * epsilon);
  const double rdp = (a - b - rest + 32.0 * rounding * (a + b + rest)) / c;
  return rdp >= 0.0 && rdp < simple ? rdp : simple;
}

}  // namespace cudp::privacy
