#pragma once
#include <cstdint>
#include <span>

#include "privacy/rdp/mechanism.hpp"

namespace cudp::privacy {

/// Epsilon at delta of Gaussian releases, on a Poisson sample or on everything, by advanced
/// composition: what papers used before moments accountants, and their SGD-Adv. Never better than a
/// Renyi bound at a trainer's settings.
///
/// Each of T releases is (e, d)-DP on its whole sample by the exact Gaussian mechanism with
/// d = (delta / 2) / (T q), hence (e', q d)-DP with e' = ln(1 + q (exp(e) - 1)); together they are
/// (sqrt(2 ln(2 / delta) sum e'^2) + sum e' (exp(e') - 1), delta)-DP.
///
/// releases: at least one; delta in (0, 1). Rounded up. Returns +infinity where double cannot hold
/// it. Throws std::invalid_argument where something is out of range, std::domain_error for other
/// mechanisms, groups of more than one example and replacing one.
/// Sources: Dwork, Rothblum, Vadhan 2010, Theorem III.3, with its martingale's steps not all equal;
/// Balle, Barthe, Gaboardi 2018 (arXiv:1807.01647), Theorem 8, for the sampling, which holds for
/// adding and for removing; the Gaussian mechanism: gaussian.hpp.
double advanced_epsilon(std::span<const Release> releases, double delta,
                        const Neighbours& neighbours = {});

/// The smallest delta at which advanced_epsilon is at most epsilon, within 1e-6 relative and
/// rounded up; 1 where there is none above 1e-300. epsilon >= 0, finite.
double advanced_delta(std::span<const Release> releases, double epsilon,
                      const Neighbours& neighbours = {});

}  // namespace cudp::privacy
