#pragma once

namespace cudp::privacy {

/// Largest supported Renyi order. (The computation for an integer order sums that many terms.)
inline constexpr double largest_order = 1e6;

/// Returns an upper bound on the Renyi divergence of order alpha of one release of the
/// Poisson-subsampled Gaussian, in nats, for both adding and removing one example. It exceeds the
/// exact value by double's rounding errors (relative 1e-11) and is never below. q in [0, 1]; sigma
/// finite, > 0; alpha in (1, largest_order], integer or fractional. +infinity if the value exceeds
/// double. Throws std::invalid_argument outside those ranges.
///
/// Source: Mironov, Talwar, Zhang 2019 (arXiv:1908.10530). By Theorem 5 the divergence of the
/// mixture from the plain Gaussian bounds both directions. Integer alpha: the finite sum of section
/// 3.3. Fractional alpha differs from the paper: the two alternating series of that section lose
/// every digit if the divergence is small and do not converge if sigma is small. Here the same
/// expectation is integrated as a positive function; see the comments in sampled_gaussian.cpp.
double rdp_sampled_gaussian(double q, double sigma, double alpha);

}  // namespace cudp::privacy
