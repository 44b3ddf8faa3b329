#include "privacy/rdp/advanced.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

/// Converts a Gaussian release to a Poisson-sampled one and returns it; the rate is 1 if the
/// release uses all examples. Throws std::domain_error for other mechanisms.
PoissonGaussian sampled_gaussian(const Mechanism& mechanism) {
  if (const auto* m = std::get_if<Gaussian>(&mechanism)) return {.q = 1.0, .sigma = m->sigma};
  if (const auto* m = std::get_if<PoissonGaussian>(&mechanism)) return *m;
  if (const auto* m = std::get_if<AllocatedGaussian>(&mechanism); m != nullptr && m->steps == 1)
    return {.q = 1.0, .sigma = m->sigma};
  throw std::domain_error(
      "advanced composition: expected Gaussian noise, on a Poisson sample or on all examples, "
      "found " +
      std::string(name(mechanism)));
}

void check_one_example(const Neighbours& neighbours) {
  if (neighbours.group != 1 || neighbours.relation == NeighbouringRelation::replace_one)
    throw std::domain_error(
        "advanced composition: expected one example, added or removed, found a group of " +
        std::to_string(neighbours.group) + ", " + std::string(name(neighbours.relation)));
}

}  // namespace

double advanced_epsilon(std::span<const Release> releases, double delta,
                        const Neighbours& neighbours) {
  check_delta(delta);
  check_one_example(neighbours);
  double count = 0.0;
  for (const Release& release : releases) {
    check(release);
    if (!releases_nothing(release)) count += static_cast<double>(release.count);
  }
  if (count == 0.0) return 0.0;

  double squares = 0.0;  // sum of e'^2
  double drift = 0.0;    // sum of e' (exp(e') - 1)
  for (const Release& release : releases) {
    if (releases_nothing(release)) continue;
    const PoissonGaussian p = sampled_gaussian(release.mechanism);
    const double d = std::fmin(0.5 * delta / count / p.q * (1.0 - 1e-14), 0.5);
    const double e = gaussian_epsilon(1.0 / p.sigma, std::fmax(d, 1e-300));
    if (d < 1e-300 || e > 700.0) return infinity;
    const double sampled = std::log1p(p.q * std::expm1(e));
    const auto times = static_cast<double>(release.count);
    squares += times * sampled * sampled;
    drift += times * sampled * std::expm1(sampled);
  }
  return (std::sqrt(2.0 * std::log(2.0 / delta) * squares) + drift) * (1.0 + 1e-12);
}

double advanced_delta(std::span<const Release> releases, double epsilon,
                      const Neighbours& neighbours) {
  check_epsilon(epsilon);
  const auto fits = [&](double log_delta) {
    return advanced_epsilon(releases, std::exp(log_delta), neighbours) <= epsilon;
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
