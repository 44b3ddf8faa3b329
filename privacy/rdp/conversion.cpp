#include "privacy/rdp/conversion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "privacy/math/constants.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

struct Lowest {
  double value = infinity;
  double order = 0.0;
};

/// Finds the order at which value(order, divergence) is smallest, and returns both. rdp(i) computes
/// the divergence at orders[i], which may take long; orders that cannot have the smallest value are
/// skipped. Requires that value increases with the divergence. Value: type of the function value().
template <class Value>
Lowest lowest(std::span<const double> orders, const RdpAt& rdp, const Value& value) {
  for (const double order : orders) check_order(order);
  std::vector<std::size_t> ascending(orders.size());
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = i;
  std::sort(ascending.begin(), ascending.end(),
            [&](std::size_t a, std::size_t b) { return orders[a] < orders[b]; });

  std::vector<double> known(orders.size(), 0.0);  // divergences at the orders; 0: not computed yet
  Lowest best;
  const auto visit = [&](std::size_t k) {
    const double order = orders[ascending[k]];
    double below = 0.0;
    for (std::size_t j = k; j > 0 && below == 0.0; --j) below = known[j - 1];
    if (value(order, below) >= best.value) return;
    known[k] = rdp(ascending[k]);
    check_rdp(known[k], order);
    const double found = value(order, known[k]);
    if (found < best.value) best = {found, order};
  };
  // Visits integer orders first: their divergences are fast to compute, and are lower bounds on the
  // divergences of larger orders, so that most other orders are skipped.
  for (const bool integers : {true, false})
    for (std::size_t k = 0; k < orders.size(); ++k)
      if ((std::trunc(orders[ascending[k]]) == orders[ascending[k]]) == integers) visit(k);
  return best;
}

}  // namespace

double epsilon_at(double order, double rdp, double delta) {
  const double shift = -std::log1p(-1.0 / order);
  const double tail = -(std::log(delta) + std::log(order)) / (order - 1.0);
  return rdp - shift + tail + 4.0 * rounding * (rdp + shift + std::fabs(tail));
}

double log_delta_at(double order, double rdp, double epsilon) {
  const double c = order - 1.0;
  const double shift = -std::log1p(-1.0 / order);
  const double by_order = c * (rdp - epsilon - shift) - std::log(order) +
                          4.0 * rounding * (c * (rdp + epsilon + shift) + std::log(order));
  // The total variation bounds delta at every epsilon, and rdp bounds the KL divergence.
  if (rdp == infinity) return infinity;
  const double by_distance = 0.5 * std::log(-std::expm1(-rdp)) + 4.0 * rounding;
  return std::fmin(by_order, by_distance);
}

double delta_from_log(double log_delta) {
  const double delta = std::exp(log_delta) * (1.0 + 4.0 * rounding);
  return std::clamp(delta, std::numeric_limits<double>::min(), 1.0);
}

PrivacyBound lowest_epsilon(std::span<const double> orders, const RdpAt& rdp, double delta) {
  check_delta(delta);
  const Lowest best = lowest(orders, rdp, [delta](double order, double divergence) {
    return epsilon_at(order, divergence, delta);
  });
  return {.epsilon = std::fmax(best.value, 0.0),
          .delta = delta,
          .accountant = AccountantKind::rdp,
          .order = best.order};
}

PrivacyBound lowest_delta(std::span<const double> orders, const RdpAt& rdp, double epsilon) {
  check_epsilon(epsilon);
  const Lowest best = lowest(orders, rdp, [epsilon](double order, double divergence) {
    return log_delta_at(order, divergence, epsilon);
  });
  return {.epsilon = epsilon,
          .delta = delta_from_log(best.value),
          .accountant = AccountantKind::rdp,
          .order = best.order};
}

void check_order(double order) {
  if (!(order > 1.0 && order < infinity))
    throw std::invalid_argument("orders: expected Renyi orders > 1, found " + number(order));
}

void check_rdp(double rdp, double order) {
  if (!(rdp >= 0.0))
    throw std::invalid_argument("rdp: expected a divergence >= 0 at order " + number(order) +
                                ", found " + number(rdp));
}

void check_delta(double delta) {
  if (!(delta > 0.0 && delta < 1.0))
    throw std::invalid_argument("delta: expected a number in (0, 1), found " + number(delta));
}

void check_epsilon(double epsilon) {
  if (!(epsilon >= 0.0 && epsilon < infinity))
    throw std::invalid_argument("epsilon: expected a finite number >= 0, found " + number(epsilon));
}

}  // namespace cudp::privacy
