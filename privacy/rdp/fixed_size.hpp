#pragma once

// Batches of a fixed size, drawn without replacement; neighbours differ by one example replaced.
// q in [0, 1]: batch / data set size. sigma finite, > 0: noise std over the most that the
// replacement moves the sum, twice the clipping norm. alpha > 1, at most largest_order. Both return
// a Renyi divergence of order alpha, in nats, rounded up; +infinity where it exceeds double. They
// throw std::invalid_argument outside those ranges.

namespace cudp::privacy {

/// The bound of Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Theorem 9, for integer orders
/// with the Gaussian's own divergence; fractional orders by the chord between integer ones (their
/// Corollary 10). Here for comparison, and where the integral below is too long.
double rdp_fixed_size_wang(double q, double sigma, double alpha);

/// The least that follows from subsampling's effect on every (epsilon, delta), which is exact:
/// Balle, Barthe, Gaboardi 2018 (arXiv:1807.01647), Theorem 9, summed up over all epsilons as Zhu,
/// Dong, Wang 2022 (arXiv:2106.08567) do for their dominating pairs. Several times below Theorem 9
/// of Wang et al. where the divergence is small; the smaller of the two is returned.
double rdp_fixed_size(double q, double sigma, double alpha);

}  // namespace cudp::privacy
