#pragma once
#include <span>

#include "privacy/phase.hpp"

namespace cudp::privacy {

/// Smallest factor for all the noise multipliers of `phases`, within 1e-8 relative, with which
/// `before` and they are (epsilon, delta)-DP: calibrates a sequence of steps that differ in their
/// noise. On the safe side, arguments and errors as sigma_for. Some twelve compositions.
double noise_factor_for(double epsilon, double delta, std::span<const Phase> phases,
                        std::span<const Phase> before = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy
