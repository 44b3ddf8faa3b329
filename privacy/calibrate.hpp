#pragma once
#include <cstdint>
#include <span>

#include "privacy/accountant.hpp"

namespace cudp::privacy {

// Each function finds one parameter (noise, sampling rate, batch, count) of new releases, with
// which earlier and new releases together are (epsilon, delta)-DP. `before`: the releases already
// charged to this budget, and their neighbours. `options`: the accountant's. `release`: the new
// releases; the field that is computed is ignored. epsilon in (0, 1e6], delta in (0, 1).
//
// Each value is on the safe side: the accountant itself, on its usual grid, confirms that it fits.
// Results are monotone: more noise, a lower rate and fewer releases are never worse. "Within x"
// means a relative distance of at most x to the best value; x is 1e-12 for the Renyi accountant
// with orders given in `options` and group = 1.
//
// If the options give no allocation_points, epochs of random allocation (AllocatedGaussian) are
// bounded with tables of 1,000 points: the epsilon is up to 1e-3 above the accountant's own.
//
// Throws std::invalid_argument if an argument is out of range, and std::domain_error, with the
// numbers, if no value fits.

/// Returns the smallest noise multiplier, within 1e-5 and up to 1e9, with which `before` and
/// `release` together are (epsilon, delta)-DP. release: Gaussian noise on a sum, with any sampling;
/// its sigma is ignored. before: releases already charged to this budget. Throws std::domain_error
/// if no noise multiplier suffices.
double calibrate_sigma(const Composition& before, const Release& release, double epsilon,
                       double delta, const AccountantOptions& options = {});

/// Returns the largest sampling rate, within 1e-5, with which `before` and the Poisson-sampled
/// `release` (also truncated) together are (epsilon, delta)-DP. The field q of `release` is
/// ignored. The result is at least 1e-12, or 1e-86 for the Renyi accountant with given orders and
/// group = 1. Throws std::domain_error if no rate is small enough.
double calibrate_rate(const Composition& before, const Release& release, double epsilon,
                      double delta, const AccountantOptions& options = {});

/// Returns the largest batch size, at most the number of examples release.n, with which `before`
/// and the fixed-size `release` together are (epsilon, delta)-DP. The field `batch` of `release` is
/// ignored. Throws std::domain_error if no batch is small enough.
std::uint64_t calibrate_batch(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Returns the largest number of releases, release.count, with which `before` and `release`
/// together are (epsilon, delta)-DP. release: a mechanism of any kind; its count is ignored. The
/// result is exact up to a million, and within 1e-6 above; it is at most 2^40. Throws
/// std::domain_error if not even one release fits.
std::uint64_t calibrate_steps(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Returns the smallest factor, within 1e-5, by which the noise multipliers of all `releases` must
/// be multiplied so that they and `before` together are (epsilon, delta)-DP. Each release is
/// Gaussian noise on a sum, with any sampling; the noise may differ between them. Throws
/// std::domain_error if no factor suffices.
double calibrate_noise_factor(const Composition& before, std::span<const Release> releases,
                              double epsilon, double delta, const AccountantOptions& options = {});

}  // namespace cudp::privacy
