#pragma once
#include <cmath>

#include "privacy/accountant.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/verify/bounds.hpp"
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/findings.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// The noise multiplier of a Gaussian mechanism, 0 of another.
double sigma_of(const privacy::Mechanism& mechanism);
/// The rate that examples are sampled with, 1 of a mechanism that takes all of them.
double rate_of(const privacy::Mechanism& mechanism);
/// Whether it is the noisy sum of norms that an epoch of DPIS begins with.
bool is_epoch_total(const Certificate& certificate, const privacy::Mechanism& mechanism);

/// The grid of an engine's sums of numbers up to max_norm.
inline double engine_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// The options of the accountant that a certificate names. engine: the method sums clipped
/// gradients of Poisson batches.
privacy::AccountantOptions accountant_options(const Certificate& certificate, bool engine);

/// Holds a certificate against itself, the ledger and the settings: rules `noise`, `batch`,
/// `divisor`, `ledger` and `epsilon`. charges: null where there is no ledger. engine: the method
/// sums clipped gradients of Poisson batches.
void check_statements(const Certificate& certificate, const Charges* charges,
                      const Settings& settings, bool engine, Bounds& bounds, Findings& findings);

}  // namespace cudp::verify
