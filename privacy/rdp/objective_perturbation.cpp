#include "privacy/rdp/objective_perturbation.hpp"

#include <cmath>
#include <stdexcept>

#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {

double objective_perturbation_delta(const ObjectivePerturbation& release, double others,
                                    double epsilon) {
  check_epsilon(epsilon);
  if (!(release.mu > 0.0 && std::isfinite(release.mu)))
    throw std::invalid_argument("mu: expected a finite number > 0, found " + number(release.mu));
  if (!(release.kappa >= 0.0 && std::isfinite(release.kappa)))
    throw std::invalid_argument("kappa: expected a finite number >= 0, found " +
                                number(release.kappa));
  // Rounded down, so that the bound is rounded up.
  const double left = (epsilon - release.kappa) * (1.0 - 1e-15) - 1e-15 * release.kappa;
  if (!(left >= 0.0)) return 1.0;
  const double together = std::hypot(release.mu, others) * (1.0 + 1e-15);
  const double delta = gaussian_delta(together, left) + 0.5 * gaussian_delta(others, left);
  return std::fmin(delta * (1.0 + 1e-15), 1.0);
}

double objective_perturbation_mu(double kappa, double fixed, double share, double epsilon,
                                 double delta) {
  check_delta(delta);
  const auto fits = [&](double mu) {
    return objective_perturbation_delta({mu, kappa}, std::hypot(fixed, share * mu), epsilon) <=
           delta;
  };
  double low = 1e-9;
  double high = 1.0;
  if (!fits(low))
    throw std::domain_error("objective perturbation: no noise reaches epsilon " + number(epsilon) +
                            " at delta " + number(delta) + ", of which the regulariser costs " +
                            number(kappa));
  while (fits(high)) {
    low = high;
    high *= 2.0;
  }
  while (high - low > 1e-10 * high) {
    const double middle = 0.5 * (low + high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace cudp::privacy
