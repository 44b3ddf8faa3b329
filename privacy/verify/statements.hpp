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

/// Returns the noise multiplier of a Gaussian mechanism; 0 for others.
double sigma_of(const privacy::Mechanism& mechanism);
/// Returns the sampling rate of examples; 1 if the mechanism uses all of them.
double rate_of(const privacy::Mechanism& mechanism);
/// Returns whether a mechanism is DPIS's release of the noisy sum of all gradient norms, at the
/// start of an epoch.
bool is_epoch_total(const StatedNumbers& certificate, const privacy::Mechanism& mechanism);

/// Returns the grid of an engine's sums, a power of two: sums of vectors with L2 norm up to
/// max_norm are integer multiples of it. (An engine is the code that computes gradients, on a CPU
/// or a GPU.)
inline double engine_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Returns the accountant's options with which to recompute a run's epsilon. The accountant is the
/// one with the smallest bound, or rdp or advanced if the certificate names one of these. engine:
/// whether the method releases sums of clipped gradients over random batches; if false, that name
/// is ignored. Uses the stated Renyi order if it was fixed in advance.
privacy::AccountantOptions accountant_options(const StatedNumbers& certificate, bool engine);

/// Checks a certificate against itself, the ledger and the settings: its noise, sampling rate,
/// divisor and epsilon must agree with each other, and it must list what was charged. Adds an entry
/// to `findings` for each difference. charges: null if there is no ledger. engine: whether the
/// method releases sums of clipped gradients over random batches. bounds: cache of the accountant's
/// results.
void check_statements(const StatedNumbers& certificate, const Charges* charges,
                      const Settings& settings, bool engine, Bounds& bounds, Findings& findings);

}  // namespace cudp::verify
