#include "privacy/rdp/divergence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "privacy/rdp/conversion.hpp"

namespace cudp::privacy {
namespace {

std::array<double, 156> make_default_orders() {
  std::array<double, 156> orders{};
  std::size_t n = 0;
  for (int tenth = 1; tenth <= 99; ++tenth) orders[n++] = 1.0 + tenth / 10.0;
  for (int order = 11; order <= 63; ++order) orders[n++] = order;
  for (const int order : {128, 256, 512, 1024}) orders[n++] = order;
  return orders;
}

/// A listed curve may be anything, also one that falls with its order: every order is looked at.
/// Returns the index of the least value(order, rdp) that is finite.
template <class Value>
std::size_t lowest_listed(std::span<const double> orders, std::span<const double> rdp,
                          const Value& value) {
  if (orders.size() != rdp.size())
    throw std::invalid_argument("rdp: expected one divergence for each of " +
                                std::to_string(orders.size()) + " orders, found " +
                                std::to_string(rdp.size()));
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = orders.size();
  for (std::size_t i = 0; i < orders.size(); ++i) {
    check_order(orders[i]);
    check_rdp(rdp[i], orders[i]);
    const double found = value(orders[i], rdp[i]);
    if (!(found < least)) continue;
    least = found;
    best = i;
  }
  if (best == orders.size())
    throw std::invalid_argument("rdp: expected an order with a finite divergence, found none");
  return best;
}

bool releases_nothing(std::span<const Phase> phases) {
  return std::all_of(phases.begin(), phases.end(),
                     [](const Phase& phase) { return phase.steps == 0 || phase.q == 0.0; });
}

}  // namespace

std::span<const double> default_orders() {
  static const std::array<double, 156> orders = make_default_orders();
  return orders;
}

Guarantee epsilon_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                           double delta) {
  check_delta(delta);
  const auto value = [delta](double order, double d) { return epsilon_at(order, d, delta); };
  const std::size_t i = lowest_listed(orders, rdp, value);
  return {.epsilon = std::fmax(value(orders[i], rdp[i]), 0.0), .delta = delta, .order = orders[i]};
}

Guarantee delta_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                         double epsilon) {
  check_epsilon(epsilon);
  const auto value = [epsilon](double order, double d) { return log_delta_at(order, d, epsilon); };
  const std::size_t i = lowest_listed(orders, rdp, value);
  return {
      .epsilon = epsilon, .delta = delta_from_log(value(orders[i], rdp[i])), .order = orders[i]};
}

Guarantee epsilon_of(std::span<const Phase> phases, double delta, std::span<const double> orders) {
  check_delta(delta);
  for (const Phase& phase : phases) check(phase);
  if (orders.empty()) orders = default_orders();
  if (releases_nothing(phases)) return {.epsilon = 0.0, .delta = delta, .order = 0.0};
  const Guarantee best = lowest_epsilon(
      orders, [&](std::size_t i) { return composed_rdp(phases, orders[i]); }, delta);
  if (!std::isfinite(best.epsilon))
    throw std::invalid_argument("rdp: expected an order with a finite divergence, found none");
  return best;
}

Guarantee delta_of(std::span<const Phase> phases, double epsilon, std::span<const double> orders) {
  check_epsilon(epsilon);
  for (const Phase& phase : phases) check(phase);
  if (orders.empty()) orders = default_orders();
  if (releases_nothing(phases)) return {.epsilon = epsilon, .delta = 0.0, .order = 0.0};
  return lowest_delta(
      orders, [&](std::size_t i) { return composed_rdp(phases, orders[i]); }, epsilon);
}

}  // namespace cudp::privacy
