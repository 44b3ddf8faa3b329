#pragma once

// Mechanisms whose privacy loss is bounded. Each function returns an upper bound on a Renyi
// divergence of order alpha, in nats, for both directions: at most 1e-11 relative above the exact
// value, never below. alpha > 1, finite, integer or fractional. Throws std::invalid_argument
// outside the stated ranges.

namespace cudp::privacy {

/// Returns the exact Renyi divergence of order alpha of the Laplace mechanism. scale: noise scale /
/// L1 sensitivity; finite, > 0. Source: Mironov 2017 (arXiv:1702.07476), Proposition 6.
double rdp_laplace(double scale, double alpha);

/// Returns an upper bound on the Renyi divergence of order alpha for every epsilon-DP mechanism;
/// randomised response attains it. epsilon finite, >= 0. Source: Kairouz, Oh, Viswanath 2015
/// (arXiv:1311.0776): randomised response dominates.
double rdp_pure(double epsilon, double alpha);

/// Returns an upper bound on the Renyi divergence of order alpha for every mechanism whose privacy
/// loss stays within an interval of length epsilon. Examples are the exponential mechanism, a
/// Gumbel selection, and every epsilon/2-DP mechanism. epsilon finite, >= 0. Source: Dong, Durfee,
/// Rogers 2019 (arXiv:1909.13830): the worst case has two outcomes, with losses t and t - epsilon;
/// pure.cpp finds the worst t. Never above alpha epsilon^2 / 8, the zCDP of Cesar, Rogers 2021
/// (arXiv:2004.07223), nor above epsilon.
double rdp_bounded_range(double epsilon, double alpha);

}  // namespace cudp::privacy
