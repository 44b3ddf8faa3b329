#include "privacy/scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "privacy/boundary.hpp"
#include "privacy/number.hpp"
#include "privacy/rdp.hpp"

namespace cudp::privacy {

double noise_factor_for(double epsilon, double delta, std::span<const Phase> phases,
                        std::span<const Phase> before, std::span<const double> orders) {
  if (!(epsilon > 0.0 && epsilon <= 1e6))
    throw std::invalid_argument("epsilon: expected a number in (0, 1e6], found " + number(epsilon));
  double least = std::numeric_limits<double>::infinity();
  for (const Phase& phase : phases) {
    check(phase);
    if (phase.q > 0.0 && phase.steps > 0) least = std::fmin(least, phase.sigma);
  }
  if (std::isinf(least))
    throw std::invalid_argument("phases: expected some that release something, found none");

  std::vector<Phase> all(before.begin(), before.end());
  all.insert(all.end(), phases.begin(), phases.end());
  // In x, the logarithm of the smallest noise multiplier.
  const auto factor = [&](double x) { return std::exp(x) / least; };
  const auto epsilon_with = [&](double x) {
    for (std::size_t i = 0; i < phases.size(); ++i)
      all[before.size() + i].sigma = phases[i].sigma * factor(x);
    return epsilon_of(all, delta, orders).epsilon;
  };
  const auto excess = [&](double x) {
    return std::log(std::clamp(epsilon_with(x), 1e-300, 1e300) / epsilon);
  };
  constexpr double kLeast = -5.0;
  constexpr double kMost = 45.0;
  double step = 0.7;
  double bad = 0.0;
  double good = 0.0;
  if (excess(0.0) > 0.0) {
    for (good = step; excess(good) > 0.0; good = std::fmin(kMost, good + (step *= 1.6))) {
      bad = good;
      if (good >= kMost)
        throw std::domain_error("epsilon " + number(epsilon) + " at delta " + number(delta) +
                                " cannot be reached: " + number(epsilon_with(kMost)) +
                                " is left with almost no release at all");
    }
  } else {
    for (bad = -step; !(excess(bad) > 0.0); bad = std::fmax(kLeast, bad - (step *= 1.6))) {
      good = bad;
      if (bad <= kLeast) return factor(bad);
    }
  }
  double x = safe_boundary(excess, bad, good, 1e-9);
  for (double nudge = 1e-15; !(epsilon_with(x) <= epsilon); nudge *= 2.0) x += nudge;
  return factor(x);
}

}  // namespace cudp::privacy
