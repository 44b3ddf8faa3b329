#include "runtime/methods/output_perturbation.hpp"

#include <cmath>
#include <stdexcept>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

RiskSettings risk_settings(const TrainConfig& config, Loss loss, double most) {
  return {.loss = loss, .max_norm = config.max_norm, .huber = config.huber, .most = most};
}

std::vector<std::string> solver_obstacles(const RiskSettings& settings, std::size_t dimension,
                                          const RiskProblem& problem) {
  if (iterations_for_all_data(settings, dimension, problem)) return {};
  return {
      "solver-tolerance: not proved to be met for all data, so that whether there is a result "
      "could tell something of them; a larger --solver-tolerance or --l2 would be"};
}

OutputPerturbation::OutputPerturbation(const TrainConfig& config, const LinearFacts& facts)
    : risk_(risk_settings(config, facts.loss, facts.most)),
      dimension_(static_cast<std::size_t>(facts.dimension)),
      delta_(*config.delta * (1.0 - kFailureShare)),
      tolerance_(config.solver_tolerance),
      regulariser_(config.l2 * facts.examples),
      sensitivity_((1.0 + 2.0 * tolerance_) / regulariser_ * (1.0 + 1e-12)),
      size_mu_(facts.size_noise > 0.0 ? 1.0 / facts.size_noise : 0.0) {
  // Gaussian releases are together one of mu^2 = the sum of theirs.
  const double all = privacy::gaussian_mu(*config.epsilon, delta_) * (1.0 - 1e-9);
  if (!(all > size_mu_))
    throw std::domain_error("the budget does not allow to count the training examples");
  mu_ = std::sqrt(all * all - size_mu_ * size_mu_);
}

std::vector<privacy::Step> OutputPerturbation::releases() const {
  return {{.mechanism = privacy::Gaussian{1.0 / mu_}, .count = 1}};
}

double OutputPerturbation::epsilon() const {
  return privacy::gaussian_epsilon(std::hypot(mu_, size_mu_) * (1.0 + 1e-14), delta_);
}

std::vector<float> OutputPerturbation::train(const LinearTask& task) const {
  RiskSettings settings = risk_;
  settings.threads = task.threads;
  LinearRisk risk(task.train, settings);
  const std::vector<double> w = minimise_risk(risk, problem()).w;
  const std::vector<float> z =
      normal_numbers({task.generator, task.key, Stream::noise, 0}, w.size());
  // Of features as they are read: scores of examples that were not scaled down stay what they were.
  const double unscaled = 1.0 / std::fmax(risk_.max_norm, 1.0);
  std::vector<float> released;
  for (std::size_t j = 0; j < w.size(); ++j)
    released.push_back(
        static_cast<float>(unscaled * (w[j] + noise_std() * static_cast<double>(z[j]))));
  return released;
}

std::vector<std::string> OutputPerturbation::obstacles() const {
  return solver_obstacles(risk_, dimension_, problem());
}

void OutputPerturbation::describe(nlohmann::ordered_json& c) const {
  c["mechanism"] = "Gaussian noise on the minimum of a strongly convex objective";
  c["sigma"] = 1.0 / mu_;
  c["sensitivity"] = sensitivity_;
  c["noise_std"] = noise_std();
  c["regulariser"] = regulariser_;
  c["max_norm"] = risk_.max_norm;
  if (risk_.loss == Loss::hinge) c["huber"] = risk_.huber;
  c["solver_tolerance"] = tolerance_;
  c["accountant"] = "gaussian";
}

}  // namespace cudp
