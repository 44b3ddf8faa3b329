#pragma once
#include <cstdint>
#include <span>

#include "privacy/accountant.hpp"

namespace cudp::privacy {

// Inverse problems of Accountant. `before`: the releases already charged to this budget, and for
// which neighbours; `options`: the accountant; `release`: the one to calibrate, whose unknown field
// is ignored. Each value is on the safe side: the accountant itself, on its usual grid, finds that
// it fits. Monotone: more noise, a lower rate and fewer releases are never worse. epsilon in (0,
// 1e6], delta in (0, 1). "Within" is relative, and 1e-12 for Renyi divergences at listed orders, of
// single examples. std::invalid_argument for what is out of range, std::domain_error, with the
// numbers, where nothing fits.

/// Smallest noise multiplier of a Gaussian release of any kind, within 1e-5; up to 1e9.
double calibrate_sigma(const Composition& before, const Release& release, double epsilon,
                       double delta, const AccountantOptions& options = {});

/// Largest sampling rate of a Poisson-sampled release (also truncated), within 1e-5; from 1e-12, at
/// listed orders from 1e-86.
double calibrate_rate(const Composition& before, const Release& release, double epsilon,
                      double delta, const AccountantOptions& options = {});

/// Largest batch of a fixed-size release, at most its n.
std::uint64_t calibrate_batch(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Largest count of any release, within 1e-6 above a million; at most 2^40.
std::uint64_t calibrate_steps(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options = {});

/// Smallest factor for the noise multipliers of all these releases, each Gaussian noise of some
/// kind, within 1e-5: calibrates a sequence that differs in its noise.
double calibrate_noise_factor(const Composition& before, std::span<const Release> releases,
                              double epsilon, double delta, const AccountantOptions& options = {});

}  // namespace cudp::privacy
