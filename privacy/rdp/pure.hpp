#pragma once

// Mechanisms whose privacy loss is bounded. Each function returns a Renyi divergence of order
// alpha, in nats, an upper bound for both directions: relative 1e-11 above the truth, never below.
// alpha > 1, finite, integer or fractional. Throws std::invalid_argument outside the stated ranges.

namespace cudp::privacy {

/// The Laplace mechanism, exactly. scale: noise scale / L1 sensitivity; finite, > 0.
/// Source: Mironov 2017 (arXiv:1702.07476), Proposition 6.
double rdp_laplace(double scale, double alpha);

/// Every mechanism that is epsilon-DP; randomised response attains it. epsilon finite, >= 0.
/// Source: Kairouz, Oh, Viswanath 2015 (arXiv:1311.0776): randomised response dominates.
double rdp_pure(double epsilon, double alpha);

/// Every mechanism whose privacy loss stays within an interval of length epsilon, as that of
/// an exponential mechanism or a Gumbel selection does; such is every epsilon/2-DP mechanism.
/// epsilon finite, >= 0.
/// Source: Dong, Durfee, Rogers 2019 (arXiv:1909.13830): the worst case has two outcomes, with
/// losses t and t - epsilon; pure.cpp finds the worst t. Never above alpha epsilon^2 / 8, the zCDP
/// of Cesar, Rogers 2021 (arXiv:2004.07223), nor above epsilon.
double rdp_bounded_range(double epsilon, double alpha);

}  // namespace cudp::privacy
