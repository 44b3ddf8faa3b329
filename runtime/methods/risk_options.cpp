#include "runtime/methods/risk_options.hpp"

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/config/class_weights.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/linear_options.hpp"

namespace cudp {

std::vector<Option> risk_options() {
  using namespace option_rows;
  return {
      number("max-norm", "R", &RiskOptions::max_norm, kPositive,
             "outpert, objpert: examples whose norm, with a constant 1, is larger are scaled down "
             "to it; 1 scales all of them to norm 1"),
      number("huber", "H", &RiskOptions::huber, kUnitPositive,
             "outpert, objpert: width to each side of the corner over which the hinge loss is "
             "rounded"),
      number("solver-tolerance", "T", &RiskOptions::solver_tolerance, kUnitPositive,
             "outpert, objpert: maximum gradient at the minimum that is found; noise covers it")};
}

std::vector<std::string> risk_option_keys() {
  return {"l2", "max-norm", "huber", "solver-tolerance", "class-weights"};
}

void check_risk(TrainConfig& config) {
  if (!(config.of<LinearOptions>().l2 > 0.0))
    throw InputError("--l2: expected a number > 0 with --method " + config.method);
}

RiskSettings risk_settings(const TrainConfig& config, Loss loss, double max_examples) {
  const auto& options = config.of<RiskOptions>();
  return {.loss = loss,
          .max_norm = options.max_norm,
          .huber = options.huber,
          .max_examples = max_examples,
          .weights = sign_weights(config.class_weights)};
}

privacy::MinimisedRisk minimised_risk(const RiskSettings& settings, double regulariser,
                                      double tolerance) {
  privacy::MinimisedRisk risk{.regulariser = regulariser,
                              .max_norm = settings.max_norm,
                              .huber = {},
                              .solver_tolerance = tolerance};
  if (settings.loss == Loss::hinge) risk.huber = settings.huber;
  return risk;
}

void check_solver(const RiskSettings& settings, std::size_t dimension, const RiskProblem& problem) {
  if (iterations_for_all_data(settings, dimension, problem)) return;
  throw BudgetError(fmt::format(
      "--solver-tolerance: {} is not proved to be reached on every data set with these settings: "
      "whether there is a result could reveal something about the rows. Give a larger "
      "--solver-tolerance{}",
      problem.tolerance, settings.loss == Loss::hinge ? ", --l2 or --huber" : " or --l2"));
}

}  // namespace cudp
