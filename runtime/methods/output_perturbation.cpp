#include "runtime/methods/output_perturbation.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/risk_options.hpp"

namespace cudp {
namespace {

/// Returns the grid g to whose multiples the d = `dimension` coordinates of the output are rounded,
/// which adds sqrt(d) g to the sensitivity. It is the largest power of two that adds at most a
/// millionth, or the nearest one with which the noise is 2^20 to 2^39 grid steps.
double grid_of(double sensitivity, double noise, std::size_t dimension) {
  const int wanted = std::ilogb(1e-6 * sensitivity / std::sqrt(static_cast<double>(dimension)));
  const int of_noise = std::ilogb(noise);
  return std::ldexp(1.0, std::clamp(wanted, of_noise - 38, of_noise - 20));
}

}  // namespace

OutputPerturbation::OutputPerturbation(const TrainConfig& config, const LinearProblem& facts)
    : LinearMethod(config, facts),
      risk_(risk_settings(config, facts.loss, facts.max_examples)),
      dimension_(static_cast<std::size_t>(facts.dimension)),
      delta_(*config.delta * (1.0 - kFailureShare)),
      tolerance_(config.of<RiskOptions>().solver_tolerance),
      regulariser_(config.of<LinearOptions>().l2 * facts.examples) {
  // The mu^2 of a composition of Gaussian releases is the sum of their mu^2. For neighbours that
  // differ by k examples (facts.unit_rows), each release has k times the mu.
  const double all = privacy::gaussian_mu(*config.epsilon, delta_) / facts.unit_rows * (1.0 - 1e-9);
  const double before = facts.mu_before;
  if (!(all > before))
    throw std::domain_error("the releases before training take the whole budget");
  mu_ = std::sqrt(all * all - before * before);
  const double exact = (1.0 + 2.0 * tolerance_) / regulariser_;
  grid_ = grid_of(exact, exact / mu_, dimension_);
  sensitivity_ = (exact + std::sqrt(static_cast<double>(dimension_)) * grid_) * (1.0 + 1e-12);
  check_solver(risk_, dimension_, problem());
}

std::vector<privacy::Release> OutputPerturbation::releases() const {
  return {{.mechanism = privacy::Gaussian{1.0 / mu_}, .count = 1}};
}

double OutputPerturbation::epsilon_of(double rows) const {
  return privacy::gaussian_epsilon(rows * std::hypot(mu_, facts().mu_before) * (1.0 + 1e-14),
                                   delta_);
}

std::vector<float> OutputPerturbation::fit(const LinearTask& task) const {
  RiskSettings settings = risk_;
  settings.threads = task.threads;
  LinearRisk risk(task.train, settings);
  const std::vector<double> w = minimise_risk(risk, problem()).w;
  const std::vector<double> noisy = task.gate.release({.name = "minimum of the objective",
                                                       .purpose = Stream::noise,
                                                       .step = 0,
                                                       .grid = grid_,
                                                       .noise_std = noise_std(),
                                                       .sensitivity = sensitivity_,
                                                       .charge = {releases()[0].mechanism, {}}},
                                                      units_of(w, grid_));
  // The risk was minimised for examples divided by max(R, |(x, 1)|). The released weights are
  // divided by max(R, 1) instead, so that they apply to features in their original scale. An
  // example of norm at most R gets the same score as in training.
  const double unscaled = 1.0 / std::fmax(risk_.max_norm, 1.0);
  std::vector<float> released;
  released.reserve(noisy.size());
  for (const double r : noisy) released.push_back(static_cast<float>(unscaled * r));
  return released;
}

void OutputPerturbation::describe_mechanism(privacy::Promise& promise,
                                            std::vector<privacy::Release> releases) const {
  promise.mechanism = "Gaussian noise on the minimum of a strongly convex objective";
  promise.how = privacy::PerturbedOutput{.risk = minimised_risk(risk_, regulariser_, tolerance_),
                                         .sigma = 1.0 / mu_,
                                         .sensitivity = sensitivity_,
                                         .noise_std = noise_std(),
                                         .grid = grid_,
                                         .releases = std::move(releases)};
}

MethodEntry output_perturbation_method() {
  MethodEntry entry = linear_method_entry();
  entry.name = "outpert";
  entry.options = risk_options();
  entry.uses = {"l2", "class-weights"};
  entry.complete = check_risk;
  entry.make = make_linear_method<OutputPerturbation>;
  return entry;
}

}  // namespace cudp
