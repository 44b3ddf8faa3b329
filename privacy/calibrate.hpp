#pragma once
#include <cstdint>
#include <span>

#include "privacy/phase.hpp"

namespace cudp::privacy {

// Inverse problems of epsilon_of. Each answer is on the safe side: epsilon_of the phases with the
// returned value is within the budget. `before` are phases that the budget also pays for; an empty
// `orders` takes default_orders(). Each throws std::invalid_argument on an argument out of range
// and std::domain_error, with the numbers, where no value reaches the budget: `before` alone
// exceeds it, or the orders' own price log(1/delta)/(order - 1) does.
// epsilon in (0, 1e6]; delta in (0, 1); q in (0, 1]; steps > 0.

/// Smallest noise multiplier for `steps` steps at rate q, within 1e-8 relative.
double sigma_for(double epsilon, double delta, double q, std::uint64_t steps,
                 std::span<const Phase> before = {}, std::span<const double> orders = {});

/// Largest sampling rate for `steps` steps with noise multiplier sigma, within 1e-8 relative.
double rate_for(double epsilon, double delta, double sigma, std::uint64_t steps,
                std::span<const Phase> before = {}, std::span<const double> orders = {});

/// Largest number of steps at rate q with noise multiplier sigma; at most 2^53.
std::uint64_t steps_for(double epsilon, double delta, double q, double sigma,
                        std::span<const Phase> before = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy
