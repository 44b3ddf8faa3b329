#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "privacy/certificate/promise.hpp"
#include "runtime/config/option.hpp"
#include "runtime/methods/linear_risk.hpp"

namespace cudp {

/// The options of the methods that minimise a LinearRisk.
struct RiskOptions {
  double max_norm = 1.0;           ///< R
  double huber = 0.5;              ///< h
  double solver_tolerance = 1e-5;  ///< tau
};
std::vector<Option> risk_options();
/// Their keys, and l2.
std::vector<std::string> risk_option_keys();

/// Throws InputError unless the risk is strongly convex.
void check_risk(TrainConfig& config);

/// How an example enters the risk, for at most `max_examples` examples.
RiskSettings risk_settings(const TrainConfig& config, Loss loss, double max_examples);

/// For a promise.
privacy::MinimisedRisk minimised_risk(const RiskSettings& settings, double regulariser,
                                      double tolerance);

/// Throws BudgetError unless the solver is proved to reach the problem's tolerance on every data
/// set within the settings: else whether there is a result could tell something of the rows. It
/// throws for all data sets or for none.
void check_solver(const RiskSettings& settings, std::size_t dimension, const RiskProblem& problem);

}  // namespace cudp
