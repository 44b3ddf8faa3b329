#pragma once
#include <span>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Returns the smallest delta for which the Gaussian mechanism with sensitivity / noise std = mu is
/// (epsilon, delta)-DP, rounded up; epsilon >= 0, mu >= 0 finite. A composition of Gaussians is one
/// Gaussian, whose mu^2 is the sum of theirs. Source: Balle, Wang 2018 (arXiv:1805.06530), Theorem
/// 8; Dong, Roth, Su 2019 (arXiv:1905.02383), Corollary 3.3 for the composition.
double gaussian_delta(double mu, double epsilon);

/// Returns the smallest epsilon >= 0 for which the Gaussian mechanism with sensitivity / noise std
/// = mu is (epsilon, delta)-DP, rounded up by less than 1e-12 relatively; delta in (0, 1).
double gaussian_epsilon(double mu, double delta);

/// Returns the largest mu = sensitivity / noise std for which the Gaussian mechanism is (epsilon,
/// delta)-DP, rounded down by less than 1e-12 relatively; epsilon > 0, delta in (0, 1). The
/// smallest noise that suffices is sensitivity / mu.
double gaussian_mu(double epsilon, double delta);

/// Estimate by Gaussian differential privacy: the single Gaussian that a composition of many small
/// releases approaches by the central limit theorem. It is not a bound: it is often below the
/// truth, and must not be used to certify anything.
struct GdpEstimate {
  double mu = 0.0;
  double estimated_epsilon = 0.0;
  double estimated_delta = 0.0;
};

/// Returns the estimate of epsilon at delta. mu^2 is the sum of count q^2 (e^(1/sigma^2) - 1) over
/// Poisson-sampled Gaussian releases (sampling rate q, noise multiplier sigma) and of k^2 count /
/// sigma^2 over plain ones. k: number of examples by which neighbours differ. Throws
/// std::domain_error for other mechanisms, and if k > 1 for sampled ones. Source: Bu, Dong, Long,
/// Su 2020 (arXiv:1911.11607), Theorem 5.
GdpEstimate gdp_estimate_epsilon(std::span<const Release> releases, double delta,
                                 std::uint64_t k = 1);
/// Returns the estimate of delta at epsilon by Gaussian differential privacy: the delta of the
/// single Gaussian that the composition approaches. It has the mu of gdp_estimate_epsilon(), and
/// throws std::domain_error for the same mechanisms. k: number of examples by which neighbours
/// differ.
GdpEstimate gdp_estimate_delta(std::span<const Release> releases, double epsilon,
                               std::uint64_t k = 1);

}  // namespace cudp::privacy
