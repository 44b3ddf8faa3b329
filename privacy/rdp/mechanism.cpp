#include "privacy/rdp/mechanism.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <variant>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/dominating_pair.hpp"
#include "privacy/rdp/fixed_size.hpp"
#include "privacy/rdp/pair.hpp"
#include "privacy/rdp/poisson_laplace.hpp"
#include "privacy/rdp/pure.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"

namespace cudp::privacy {
namespace {

[[noreturn]] void unknown(const Mechanism& mechanism, const std::string& expected,
                          const Neighbours& neighbours) {
  throw std::domain_error(std::string(name(mechanism)) + ": expected " + expected +
                          " (no bound is known for others), found " +
                          std::string(name(neighbours.relation)) + " with groups of " +
                          std::to_string(neighbours.group));
}

[[noreturn]] void refuse_allocation() {
  throw std::domain_error(
      "allocated-gaussian: no bound in Renyi divergence or zCDP is implemented for random "
      "allocation, so neither accountant rdp nor a filter can account for it. Use accountant pld");
}

/// Returns how many additions or removals of an example turn a data set into its neighbour; a
/// replacement counts twice.
double changes(const Neighbours& neighbours) {
  return static_cast<double>(neighbours.group) *
         (neighbours.relation == NeighbouringRelation::replace_one ? 2.0 : 1.0);
}

bool replaces(const Neighbours& neighbours) {
  return neighbours.relation == NeighbouringRelation::replace_one;
}

double gaussian_divergence(double sigma, double distance, double alpha) {
  const double s = distance / std::fmin(sigma, 1e100);
  return 0.5 * alpha * s * s * (1.0 + 8.0 * rounding);
}

double divergence_of_pairs(const Mechanism& mechanism, double alpha, const Neighbours& neighbours) {
  double largest = std::numeric_limits<double>::quiet_NaN();  // fmax ignores this NaN
  for (const Change change : changes_of(neighbours.relation)) {
    const double divergence =
        rdp_of_pairs(dominating_pairs(mechanism, change, neighbours.group), alpha);
    largest = std::fmax(largest, divergence);
  }
  return largest;
}

struct Divergence {
  const Mechanism& mechanism;
  double alpha;
  const Neighbours& neighbours;

  double operator()(const Gaussian& m) const {
    return gaussian_divergence(m.sigma, changes(neighbours), alpha);
  }
  double operator()(const PoissonGaussian& m) const {
    if (m.q == 1.0) return gaussian_divergence(m.sigma, changes(neighbours), alpha);
    if (m.q == 0.0) return 0.0;
    if (alpha > largest_order) return infinity;
    const bool single = neighbours.group == 1 && !replaces(neighbours);
    if (single && neighbours.relation != NeighbouringRelation::add)
      return rdp_sampled_gaussian(m.q, m.sigma, alpha);
    const double value = divergence_of_pairs(mechanism, alpha, neighbours);
    return single ? std::fmin(value, rdp_sampled_gaussian(m.q, m.sigma, alpha)) : value;
  }
  double operator()(const FixedSizeGaussian& m) const {
    if (alpha > largest_order) return infinity;
    if (!replaces(neighbours)) return divergence_of_pairs(mechanism, alpha, neighbours);
    if (neighbours.group != 1)
      unknown(mechanism, "groups of 1 where examples are replaced", neighbours);
    const double q = static_cast<double>(m.batch) / static_cast<double>(m.n);
    return rdp_fixed_size(std::fmin(1.0, q * (1.0 + 2.0 * rounding)), 0.5 * m.sigma, alpha);
  }
  double operator()(const TruncatedPoissonGaussian&) const { return of_pairs(); }
  double operator()(const AllocatedGaussian& m) const {
    if (m.steps > 1) refuse_allocation();
    return gaussian_divergence(m.sigma, changes(neighbours), alpha);
  }
  double operator()(const GaussianMixture&) const { return of_pairs(); }
  double operator()(const Laplace& m) const {
    return rdp_laplace(m.scale / changes(neighbours), alpha);
  }
  double operator()(const PoissonLaplace& m) const {
    if (m.q == 1.0) return rdp_laplace(m.scale / changes(neighbours), alpha);
    if (replaces(neighbours) || neighbours.group != 1)
      unknown(mechanism, "one example added or removed", neighbours);
    return alpha > largest_order ? infinity : rdp_poisson_laplace(m.q, m.scale, alpha);
  }
  double operator()(const BoundedRange& m) const {
    return rdp_bounded_range(changes(neighbours) * m.epsilon, alpha);
  }
  double operator()(const ApproximateDp& m) const {
    return rdp_pure(changes(neighbours) * m.epsilon, alpha);
  }
  double of_pairs() const {
    return alpha > largest_order ? infinity : divergence_of_pairs(mechanism, alpha, neighbours);
  }
};

/// Visitor that returns the rho of zero-concentrated DP for each kind of mechanism (zcdp_of()).
struct Concentration {
  const Mechanism& mechanism;
  const Neighbours& neighbours;

  double operator()(const Gaussian& m) const { return gaussian(m.sigma, 1.0); }
  double operator()(const PoissonGaussian& m) const {
    return m.q == 0.0 ? 0.0 : gaussian(m.sigma, 1.0);
  }
  /// Returns rho for a fixed-size sample. An added example may displace another one from the batch,
  /// which changes the sum by 2; so rho is that of Gaussian noise with sensitivity 2. If examples
  /// are replaced, gaussian() already counts each of them as two changes, with sensitivity 1.
  double operator()(const FixedSizeGaussian& m) const {
    return gaussian(m.sigma, replaces(neighbours) ? 1.0 : 2.0);
  }
  double operator()(const TruncatedPoissonGaussian& m) const {
    if (replaces(neighbours) || neighbours.group != 1)
      unknown(mechanism, "one example added or removed", neighbours);
    return m.q == 0.0 ? 0.0 : gaussian(m.sigma, 2.0);
  }
  double operator()(const AllocatedGaussian& m) const {
    if (m.steps > 1) refuse_allocation();
    return gaussian(m.sigma, 1.0);
  }
  double operator()(const GaussianMixture& m) const {
    if (replaces(neighbours) || neighbours.group != 1)
      unknown(mechanism, "one example added or removed", neighbours);
    double max_sensitivity = 0.0;
    for (std::size_t j = 0; j < m.sensitivities.size(); ++j)
      if (m.probabilities[j] > 0.0)
        max_sensitivity = std::fmax(max_sensitivity, m.sensitivities[j]);
    return gaussian(m.sigma, max_sensitivity);
  }
  double operator()(const Laplace& m) const { return zcdp_of_pure(changes(neighbours) / m.scale); }
  double operator()(const PoissonLaplace& m) const {
    return m.q == 0.0 ? 0.0 : zcdp_of_pure(changes(neighbours) / m.scale);
  }
  double operator()(const BoundedRange& m) const {
    const double epsilon = changes(neighbours) * m.epsilon;
    return 0.125 * epsilon * epsilon * (1.0 + 4.0 * rounding);
  }
  double operator()(const ApproximateDp& m) const {
    return zcdp_of_pure(changes(neighbours) * m.epsilon);
  }
  double gaussian(double sigma, double sensitivity) const {
    return gaussian_divergence(sigma, changes(neighbours) * sensitivity, 1.0);
  }
};

void check_group(const Neighbours& neighbours) {
  if (neighbours.group == 0)
    throw std::invalid_argument("group: expected at least 1 example, found 0");
}

}  // namespace

double rdp(const Mechanism& mechanism, double alpha, const Neighbours& neighbours) {
  check(mechanism);
  check_order(alpha);
  check_group(neighbours);
  return std::visit(Divergence{mechanism, alpha, neighbours}, mechanism);
}

double failure_of(const Mechanism& mechanism, const Neighbours& neighbours) {
  const auto* known = std::get_if<ApproximateDp>(&mechanism);
  if (known == nullptr || known->delta == 0.0) return 0.0;
  if (changes(neighbours) != 1.0) unknown(mechanism, "one example added or removed", neighbours);
  return known->delta;
}

double zcdp_of(const Mechanism& mechanism, const Neighbours& neighbours) {
  check(mechanism);
  check_group(neighbours);
  return std::visit(Concentration{mechanism, neighbours}, mechanism);
}

}  // namespace cudp::privacy
