#include "privacy/rdp/advanced.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <variant>

#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The step's sampling rate and noise multiplier.
Phase phase_of(const Step& step) {
  if (const auto* m = std::get_if<Gaussian>(&step.mechanism)) return {1.0, m->sigma, step.count};
  if (const auto* m = std::get_if<PoissonGaussian>(&step.mechanism))
    return {m->q, m->sigma, step.count};
  throw std::domain_error(
      "advanced composition: expected Gaussian noise, on a Poisson sample or on everything, "
      "found " +
      std::string(name(step.mechanism)));
}

void check_whom(const Protected& whom) {
  if (whom.group != 1 || whom.relation == Neighbours::replace_one)
    throw std::domain_error(
        "advanced composition: expected one example, added or removed, found a group of " +
        std::to_string(whom.group) + ", " + std::string(name(whom.relation)));
}

}  // namespace

double advanced_epsilon(std::span<const Step> steps, double delta, const Protected& whom) {
  check_delta(delta);
  check_whom(whom);
  double count = 0.0;
  for (const Step& step : steps) {
    check(step);
    if (!releases_nothing(step)) count += static_cast<double>(step.count);
  }
  if (count == 0.0) return 0.0;

  double squares = 0.0;  // sum of e'^2
  double drift = 0.0;    // sum of e' (exp(e') - 1)
  for (const Step& step : steps) {
    if (releases_nothing(step)) continue;
    const Phase p = phase_of(step);
    const double d = std::fmin(0.5 * delta / count / p.q * (1.0 - 1e-14), 0.5);
    const double e = gaussian_epsilon(1.0 / p.sigma, std::fmax(d, 1e-300));
    if (d < 1e-300 || e > 700.0) return infinity;
    const double sampled = std::log1p(p.q * std::expm1(e));
    const auto times = static_cast<double>(p.steps);
    squares += times * sampled * sampled;
    drift += times * sampled * std::expm1(sampled);
  }
  return (std::sqrt(2.0 * std::log(2.0 / delta) * squares) + drift) * (1.0 + 1e-12);
}

double advanced_delta(std::span<const Step> steps, double epsilon, const Protected& whom) {
  check_epsilon(epsilon);
  const auto fits = [&](double log_delta) {
    return advanced_epsilon(steps, std::exp(log_delta), whom) <= epsilon;
  };
  double low = std::log(1e-300);
  double high = -1e-9;
  if (fits(low)) return std::exp(low);
  if (!fits(high)) return 1.0;
  while (high - low > 1e-7) {
    const double middle = 0.5 * (low + high);
    (fits(middle) ? high : low) = middle;
  }
  return std::fmin(std::exp(high) * (1.0 + 1e-12), 1.0);
}

}  // namespace cudp::privacy
