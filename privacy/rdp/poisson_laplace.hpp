#pragma once

namespace cudp::privacy {

/// Returns an upper bound on the Renyi divergence of order alpha of Laplace noise on a Poisson
/// sample, in nats, for both adding and removing one example. q in [0, 1]; scale: noise scale over
/// sensitivity, finite, > 0; alpha in (1, largest_order]. +infinity if the value exceeds double.
/// Throws std::invalid_argument outside those ranges.
///
/// Integer orders: the binomial expansion of E[(1 - q + q L)^alpha], with the moments of L = P/Q by
/// Mironov 2017, Proposition 6. Removing an example is the larger of the two directions: Mironov,
/// Talwar, Zhang 2019 (arXiv:1908.10530), Theorem 5, which applies because x -> 1 - x exchanges the
/// two Laplace distributions. Fractional orders: the chord between integer ones, because log E is
/// convex in the order.
double rdp_poisson_laplace(double q, double scale, double alpha);

}  // namespace cudp::privacy
