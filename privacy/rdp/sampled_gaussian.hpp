#pragma once

namespace cudp::privacy {

/// The largest Renyi order that is computed: an integer order is a sum of that many terms.
inline constexpr double largest_order = 1e6;

/// Renyi divergence of order alpha of one release of the Poisson-subsampled Gaussian, in nats: an
/// upper bound for both adding and removing one example, as wide as double's rounding needs
/// (relative 1e-11) and never narrower.
/// q in [0, 1]; sigma finite, > 0; alpha in (1, largest_order], integer or fractional. +infinity
/// where the value exceeds double. Throws std::invalid_argument outside those ranges.
///
/// Source: Mironov, Talwar, Zhang 2019 (arXiv:1908.10530): the order of mixture and base that
/// bounds both directions (Theorem 5), and for integer alpha the finite sum of section 3.3.
/// Departs from it for fractional alpha: the two alternating series of that section lose every
/// digit where the divergence is small and do not converge where sigma is. Here the same
/// expectation is integrated as a positive function; see the comments in sampled_gaussian.cpp.
double rdp_sampled_gaussian(double q, double sigma, double alpha);

}  // namespace cudp::privacy
