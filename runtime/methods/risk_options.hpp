#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "privacy/certificate/promise.hpp"
#include "runtime/config/option.hpp"
#include "runtime/methods/linear_risk.hpp"

namespace cudp {

/// Options of the methods that minimise the regularised risk of a linear model (output and
/// objective perturbation).
struct RiskOptions {
  double max_norm = 1.0;           ///< R: an example is divided by max(R, its norm)
  double huber = 0.5;              ///< h, half the width of the smoothed part of the hinge loss
  double solver_tolerance = 1e-5;  ///< tau, maximum norm of the gradient at the computed minimum
};
std::vector<Option> risk_options();
/// Returns the keys of the options in RiskOptions, and "l2": those of output and objective
/// perturbation.
std::vector<std::string> risk_option_keys();

/// Throws InputError unless config.l2 is positive, which makes the regularised risk strongly
/// convex.
void check_risk(TrainConfig& config);

/// Returns the settings of the empirical risk (sum of losses), taken from the config. max_examples:
/// public upper bound on the number of examples.
RiskSettings risk_settings(const TrainConfig& config, Loss loss, double max_examples);

/// Returns the description of the risk and of its minimum for a certificate. regulariser: factor on
/// |w|^2 / 2 in the objective. tolerance: maximum norm of the objective's gradient at the computed
/// minimum.
privacy::MinimisedRisk minimised_risk(const RiskSettings& settings, double regulariser,
                                      double tolerance);

/// Throws BudgetError unless it is proved that the solver reaches the problem's tolerance on every
/// data set that the settings allow. Without a proof, a failure of the solver could reveal
/// something about the rows. Does not read the data.
void check_solver(const RiskSettings& settings, std::size_t dimension, const RiskProblem& problem);

}  // namespace cudp
