#pragma once
#include <cstdint>

#include "privacy/filter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/dp_agd.hpp"

namespace cudp {

/// What the filter of a run promises: the config's epsilon at its delta in zCDP; with the classical
/// conversion the smaller epsilon that its rho = (sqrt(ln(1/delta) + epsilon) -
/// sqrt(ln(1/delta)))^2 (the paper's equation (5)) really has.
privacy::Budget dp_agd_budget(const TrainConfig& config);

/// The settings of DP-AGD for a filter's whole budget rho and `examples` in the training set, of
/// which there are at most `most`.
///
/// By rho: an iteration starts with rho / splits, of which gradient_share is the gradient's. The
/// default, splits = examples epsilon / 100 but at least 10, follows the signal: sums grow with the
/// examples, the noise of a whole budget falls with epsilon. (Chosen on BANK and IPUMS-BR.)
/// By epsilon, the paper's section 6.2: epsilon_nmax = epsilon_ng = epsilon / (2 splits), splits =
/// 60; rho_ng is then that of the Gaussian mechanism's classical noise (its Theorem 3.3),
/// epsilon_ng^2 / (4 ln(1.25/delta)).
DpAgdSettings dp_agd_settings(const TrainConfig& config, double rho, double examples, double most);

}  // namespace cudp
