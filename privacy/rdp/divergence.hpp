#pragma once
#include <span>

#include "privacy/phase.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"

namespace cudp::privacy {

/// The orders used where none are given: those of dp_accounting's RDP accountant, 1.1 to 10.9 in
/// tenths, 11 to 63, 128, 256, 512, 1024. Ascending.
std::span<const double> default_orders();

/// Smallest epsilon such that the mechanism is (epsilon, delta)-DP, from its Renyi-DP curve.
/// orders > 1, [n]; rdp in nats, >= 0, [n], +inf drops that order; delta in (0, 1).
/// Returns nats, >= 0, an upper bound, for the adjacency `rdp` was computed under.
/// Throws std::invalid_argument on mismatched sizes, an order <= 1, a negative or NaN rdp, or no
/// usable order: a wrong small epsilon is a broken promise.
/// Source: Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12 (v4).
Guarantee epsilon_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                           double delta);

/// Smallest delta for the given epsilon >= 0; same rules and source. At most 1, never 0.
Guarantee delta_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                         double epsilon);

/// (epsilon, delta) of a sequence of phases, composed by adding their Renyi divergences
/// (Mironov 2017, Proposition 1). An empty `orders` takes default_orders(). Throws
/// std::invalid_argument on arguments out of range, or where no order gives a finite epsilon.
/// Phases that release nothing (no steps, or q = 0) cost nothing: epsilon 0, delta 0, order 0.
Guarantee epsilon_of(std::span<const Phase> phases, double delta,
                     std::span<const double> orders = {});
Guarantee delta_of(std::span<const Phase> phases, double epsilon,
                   std::span<const double> orders = {});

}  // namespace cudp::privacy
