#pragma once
#include <cstdint>
#include <span>

namespace cudp::privacy {

/// `steps` releases of the Poisson-subsampled Gaussian mechanism. q = 1 is the plain Gaussian.
struct Phase {
  double q = 0.0;      ///< sampling rate, in [0, 1]
  double sigma = 0.0;  ///< noise multiplier: noise std / L2 sensitivity; finite and > 0
  std::uint64_t steps = 0;
};

/// A differential-privacy statement, and the Renyi order that gave it.
struct Guarantee {
  double epsilon = 0.0;
  double delta = 0.0;
  double order = 0.0;
};

/// The orders used where none are given: those of dp_accounting's RDP accountant.
std::span<const double> default_orders();

/// Renyi divergence of order alpha of one step, in nats: an upper bound for both add and remove.
/// q in [0, 1]; sigma > 0; alpha > 1, integer or fractional. +infinity where it cannot be bounded
/// in double. Throws std::invalid_argument outside those ranges. Source: Mironov, Talwar, Zhang
/// 2019 (arXiv:1908.10530), section 3.3.
double rdp_sampled_gaussian(double q, double sigma, double alpha);

/// Smallest epsilon such that the mechanism is (epsilon, delta)-DP, from its Renyi-DP curve.
/// orders > 1, [n]; rdp in nats, >= 0, [n], +inf drops that order; delta in (0, 1).
/// Returns nats, >= 0, an upper bound, for the adjacency `rdp` was computed under.
/// Throws std::invalid_argument on mismatched sizes, an order <= 1, a negative or NaN rdp, or no
/// usable order: a wrong small epsilon is a broken promise.
/// Source: Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12 (v4).
Guarantee epsilon_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                           double delta);

/// Smallest delta for the given epsilon >= 0; same rules and source.
Guarantee delta_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                         double epsilon);

/// (epsilon, delta) of a sequence of phases, composed by adding their Renyi divergences.
/// An empty `orders` takes default_orders().
Guarantee epsilon_of(std::span<const Phase> phases, double delta,
                     std::span<const double> orders = {});
Guarantee delta_of(std::span<const Phase> phases, double epsilon,
                   std::span<const double> orders = {});

/// Smallest noise multiplier with which `steps` steps at rate q, composed after `before`, stay
/// within (epsilon, delta). Returned rounded up: the guarantee holds for the returned value, and is
/// within 1e-6 relative of the smallest such value. Throws std::invalid_argument on arguments out
/// of range and std::domain_error where no finite sigma reaches epsilon (say, because `before`
/// alone exceeds it), with the numbers.
double sigma_for(double epsilon, double delta, double q, std::uint64_t steps,
                 std::span<const Phase> before = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy
