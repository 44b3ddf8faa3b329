#pragma once
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Returns an upper bound on the Renyi divergence of order alpha of one release, in nats, rounded
/// up. +infinity if it exceeds double, or alpha is too large for the mechanism (largest_order, for
/// samples). k: number of examples by which neighbours differ. s: 2 if these are replaced, 1 if
/// they are added or removed. Throws std::invalid_argument if the mechanism, the order or the group
/// are out of range, and std::domain_error, with the reason, if no bound is known.
///
///   | mechanism | theorem |
///   |---|---|
///   | Gaussian | alpha (k s / sigma)^2 / 2: Mironov 2017, Proposition 7 |
///   | PoissonGaussian | sampled_gaussian.hpp; groups, one direction and replacing: pair.hpp |
///   | FixedSizeGaussian | pair.hpp; replacing: fixed_size.hpp (k = 1) |
///   | TruncatedPoissonGaussian, GaussianMixture | pair.hpp (k = 1) |
///   | AllocatedGaussian | none (std::domain_error); one step: Gaussian |
///   | Laplace | pure.hpp, scale / (k s) |
///   | PoissonLaplace | poisson_laplace.hpp (k = 1, add and remove) |
///   | BoundedRange | pure.hpp, k s epsilon: the losses of a chain of neighbours add |
///   | ApproximateDp | pure.hpp, k s epsilon; its delta has no divergence: see failure_of |
double rdp(const Mechanism& mechanism, double alpha, const Neighbours& neighbours = {});

/// Returns the probability of the event on which the mechanism has no guarantee: ApproximateDp's
/// delta, 0 for all others. A mechanism that is (epsilon, delta)-DP is, except on an event of that
/// probability, epsilon-DP (Kairouz, Oh, Viswanath 2015, arXiv:1311.0776). The deltas of a sequence
/// are added to the delta of the rest (Whitehouse et al. 2023, arXiv:2203.05481, Theorem 1, even if
/// the sequence is chosen adaptively). Throws std::domain_error for a group of more than one change
/// with delta > 0.
double failure_of(const Mechanism& mechanism, const Neighbours& neighbours = {});

/// Returns the smallest known rho for which one release satisfies rho-zCDP (zero-concentrated DP):
/// its Renyi divergence of every order alpha is at most rho alpha. Rounded up. Throws
/// std::invalid_argument if the mechanism or the group is out of range, std::domain_error if no rho
/// is known. Sampling is ignored, because it does not help at large orders.
///
/// For one example added or removed, Gaussian noise has rho = 1/(2 sigma^2) (Bun, Steinke 2016,
/// arXiv:1605.02065, Proposition 1.6). A GaussianMixture has the rho of its largest sensitivity, by
/// quasi-convexity. For pure epsilon-DP, which includes Laplace, rho = epsilon tanh(epsilon/2),
/// attained by randomised response (zcdp_of_pure). For BoundedRange rho = epsilon^2/8 (Cesar,
/// Rogers 2021, arXiv:2004.07223).
double zcdp_of(const Mechanism& mechanism, const Neighbours& neighbours = {});

}  // namespace cudp::privacy
