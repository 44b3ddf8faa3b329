#pragma once
#include <cmath>

#include "privacy/accountant.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/verify/bounds.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/findings.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Noise multiplier of a Gaussian mechanism; 0 for others.
double sigma_of(const privacy::Mechanism& mechanism);
/// Sampling rate of examples; 1 if the mechanism uses all of them.
double rate_of(const privacy::Mechanism& mechanism);
/// Whether a mechanism is the noisy sum of norms that an epoch of DPIS begins with.
bool is_epoch_total(const StatedNumbers& certificate, const privacy::Mechanism& mechanism);

/// Grid of an engine's sums of values up to max_norm.
inline double engine_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Returns the options of the accountant of a run: the smallest of all bounds, unless the
/// certificate names one that only a setting chooses. `engine`: the method sums clipped gradients
/// of Poisson batches.
privacy::AccountantOptions accountant_options(const StatedNumbers& certificate, bool engine);

/// Checks a certificate against itself, the ledger and the settings, by the rules `noise`, `batch`,
/// `divisor`, `ledger` and `epsilon`. `charges`: null if there is no ledger. `engine`: the method
/// sums clipped gradients of Poisson batches.
void check_statements(const StatedNumbers& certificate, const Charges* charges,
                      const Settings& settings, bool engine, Bounds& bounds, Findings& findings);

}  // namespace cudp::verify
