#pragma once
#include <cstdint>
#include <span>

#include "privacy/rdp/mechanism.hpp"

namespace cudp::privacy {

/// Returns the epsilon at delta of a composition of Gaussian releases, on Poisson samples (rate q)
/// or on all examples, by advanced composition: the baseline called SGD-Adv in papers on the
/// moments accountant.
///
/// Each of T releases is (e, d)-DP on its own sample, by the exact bound of the Gaussian mechanism
/// with d = (delta / 2) / (T q). So it is (e', q d)-DP with e' = ln(1 + q (exp(e) - 1)). All
/// together are (sqrt(2 ln(2 / delta) sum e'^2) + sum e' (exp(e') - 1), delta)-DP, where the sums
/// are over releases.
///
/// releases: at least one; delta in (0, 1). Rounded up. Returns +infinity if the value exceeds
/// double. Throws std::invalid_argument if an argument is out of range, std::domain_error for other
/// mechanisms, groups of more than one example, and replaced examples. Sources: Dwork, Rothblum,
/// Vadhan 2010, Theorem III.3, generalised to unequal steps of its martingale; Balle, Barthe,
/// Gaboardi 2018 (arXiv:1807.01647), Theorem 8, for the sampling, which holds for adding and for
/// removing; the Gaussian mechanism: gaussian.hpp. neighbours: the relation between data sets.
double advanced_epsilon(std::span<const Release> releases, double delta,
                        const Neighbours& neighbours = {});

/// Returns the smallest delta at which advanced_epsilon(releases, delta) is at most epsilon, within
/// 1e-6 relative and rounded up. epsilon >= 0, finite. Returns 1 if there is none below 1, and
/// never less than 1e-300. neighbours: the relation between data sets.
double advanced_delta(std::span<const Release> releases, double epsilon,
                      const Neighbours& neighbours = {});

}  // namespace cudp::privacy
