#pragma once
#include <cstdint>
#include <span>

#include "privacy/accountant.hpp"

namespace cudp::privacy {

// Inverse problems of Account. `budget` says what else the same (epsilon, delta) pays for (its
// steps), for which group, relation and accountant; `step` is the step that is to be had, of which
// one field is unknown and ignored. Each answer is on the safe side: Account itself, on its usual
// grid, finds that it fits. Monotone: more noise, a lower rate and fewer steps are never worse.
// epsilon in (0, 1e6], delta in (0, 1). "Within" is relative, and 1e-12 for Renyi divergences at
// listed orders, of single examples. std::invalid_argument for what is out of range,
// std::domain_error, with the numbers, where nothing fits.

/// Smallest noise multiplier of a Gaussian step of any kind, within 1e-5; up to 1e9.
double solve_sigma(const Question& budget, const Step& step, double epsilon, double delta);

/// Largest sampling rate of a Poisson-sampled step (also truncated), within 1e-5; from 1e-12, at
/// listed orders from 1e-86.
double solve_rate(const Question& budget, const Step& step, double epsilon, double delta);

/// Largest batch of a fixed-size step, at most its n.
std::uint64_t solve_batch(const Question& budget, const Step& step, double epsilon, double delta);

/// Largest count of any step, within 1e-6 above a million; at most 2^40.
std::uint64_t solve_steps(const Question& budget, const Step& step, double epsilon, double delta);

/// Smallest factor for the noise multipliers of all these steps, each Gaussian noise of some kind,
/// within 1e-5: calibrates a sequence that differs in its noise.
double solve_noise_factor(const Question& budget, std::span<const Step> steps, double epsilon,
                          double delta);

}  // namespace cudp::privacy
