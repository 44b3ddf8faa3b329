#pragma once

// Renyi divergences of Gaussian noise on batches of a fixed size, drawn without replacement.
// Neighbours differ by one example replaced. q in [0, 1]: batch size / data set size. sigma finite,
// > 0: standard deviation of the noise / largest change of the sum by a replacement, which is twice
// the clipping norm. alpha > 1, at most largest_order. Both functions return nats, rounded up, and
// +infinity if the value exceeds double. They throw std::invalid_argument outside those ranges.

namespace cudp::privacy {

/// Returns an upper bound on the Renyi divergence of order alpha of Gaussian noise on a fixed-size
/// sample, whose fraction q of all examples is drawn without replacement: the bound of Wang, Balle,
/// Kasiviswanathan 2019 (arXiv:1808.00087), Theorem 9, applied to the Gaussian mechanism, for
/// integer orders; for fractional orders, by linear interpolation of (alpha - 1) times the bound
/// between integer ones (their Corollary 10). Used for comparison, and if the integral of
/// rdp_fixed_size takes too long.
double rdp_fixed_size_wang(double q, double sigma, double alpha);

/// Returns an upper bound on the Renyi divergence of order alpha of Gaussian noise on a fixed-size
/// sample, whose fraction q of all examples is drawn without replacement. It is the smallest bound
/// that follows from the exact effect of subsampling on every (epsilon, delta): Balle, Barthe,
/// Gaboardi 2018 (arXiv:1807.01647), Theorem 9, integrated over all epsilons as Zhu, Dong, Wang
/// 2022 (arXiv:2106.08567) do for their dominating pairs. It is several times below Theorem 9 of
/// Wang et al. if the divergence is small. The result is never above the divergence without
/// sampling.
double rdp_fixed_size(double q, double sigma, double alpha);

}  // namespace cudp::privacy
