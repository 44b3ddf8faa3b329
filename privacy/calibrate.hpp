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

/// Returns the smallest noise multiplier of a Gaussian release of any kind, within 1e-5; up to 1e9.
double calibrate_sigma(const Composition& before, const Release& release, double epsilon,
                       double delta, const AccountantOptions& options = {});

/// Returns the largest sampling rate of a Poisson-sampled release (also truncated), within 1e-5. It
/// is at least 1e-12, or 1e-86 for the Renyi accountant with given orders and group = 1.
double calibrate_rate(const Composition& before, const Release& release, double epsilon,
                      double delta, const AccountantOptions& options = {});

/// Returns the largest batch of a fixed-size release, at most its n.
std::uint64_t calibrate_batch(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Returns the largest number of releases of a mechanism of any kind: exact up to a million, within
/// 1e-6 above; at most 2^40.
std::uint64_t calibrate_steps(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Returns the smallest factor for the noise multipliers of all these releases, each Gaussian noise
/// of some kind, within 1e-5. Calibrates a sequence of releases with different noise.
double calibrate_noise_factor(const Composition& before, std::span<const Release> releases,
                              double epsilon, double delta, const AccountantOptions& options = {});

}  // namespace cudp::privacy
