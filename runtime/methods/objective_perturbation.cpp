#include "runtime/methods/objective_perturbation.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "privacy/rdp/objective_perturbation.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/gate/release_observer.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/risk_options.hpp"

namespace cudp {
namespace {

constexpr double kOutputShare = 0.01;  // mu_out / mu: share of the noisy output in the guarantee

/// Returns the smallest weight of the regulariser for which kappa = ln(1 + curvature / weight) is
/// at most `epsilon`. kappa bounds the part of the privacy loss that comes from the determinant of
/// the Hessian.
double min_regulariser(double curvature, double epsilon) { return curvature / std::expm1(epsilon); }

}  // namespace

ObjectivePerturbation::ObjectivePerturbation(const TrainConfig& config, const LinearProblem& facts)
    : LinearMethod(config, facts),
      risk_(risk_settings(config, facts.loss, facts.max_examples)),
      dimension_(static_cast<std::size_t>(facts.dimension)),
      epsilon_(*config.epsilon),
      delta_(*config.delta * (1.0 - kFailureShare)),
      tolerance_(config.of<RiskOptions>().solver_tolerance) {
  const double beta = loss_curvature(risk_);
  const double max_epsilon_for_kappa = epsilon_ * (facts.size_is_public ? 0.5 : 0.1);
  regulariser_ = std::fmax(config.of<LinearOptions>().l2 * facts.examples,
                           min_regulariser(beta, max_epsilon_for_kappa));
  kappa_ = (facts.size_is_public ? std::log1p(beta / regulariser_) : max_epsilon_for_kappa) *
           (1.0 + 1e-12);
  mu_ = privacy::objective_perturbation_mu(kappa_, facts.mu_before, kOutputShare, epsilon_, delta_);
  output_noise_std_ = 2.0 * tolerance_ / regulariser_ / (kOutputShare * mu_) * (1.0 + 1e-12);
  check_solver(risk_, dimension_, problem());
}

/// Returns the objective without its random linear term b, but with a bound on |b|. With
/// probability at least 1 - exp(-t), |b| is at most (sqrt(d) + sqrt(2 t)) / mu (Laurent, Massart
/// 2000, Lemma 1). t is such that exp(-t) is half of the part of delta reserved for bounds; the
/// other half is for the bound on the number of examples.
RiskProblem ObjectivePerturbation::problem() const {
  const double t = -std::log(0.5 * kFailureShare * delta_);
  return {.regulariser = regulariser_,
          .linear_bound = (std::sqrt(static_cast<double>(dimension_)) + std::sqrt(2.0 * t)) / mu_,
          .tolerance = tolerance_};
}

std::vector<std::string> ObjectivePerturbation::obstacles() const {
  return {real_numbers_obstacle("objective perturbation")};
}

/// Returns the release with which the method is charged: an (epsilon, delta)-DP release, because
/// the ledger has no mechanism for objective perturbation. Its epsilon includes the cost of the
/// noisy number of examples, which the ledger also charges separately, so the ledger's total
/// exceeds the epsilon that the certificate states.
std::vector<privacy::Release> ObjectivePerturbation::releases() const {
  return {{.mechanism = privacy::ApproximateDp{.epsilon = epsilon_, .delta = delta_}, .count = 1}};
}

std::vector<float> ObjectivePerturbation::fit(const LinearTask& task) const {
  RiskSettings settings = risk_;
  settings.threads = task.threads;
  LinearRisk risk(task.train, settings);
  const auto normal = [&](std::uint64_t number) {
    return normal_numbers({task.generator, task.key, Stream::noise, number}, risk.dimension());
  };
  pass_gate(task.gate);
  RiskProblem with_b = problem();
  for (const float z : normal(0)) with_b.linear.push_back(static_cast<double>(z) / mu_);
  const std::vector<double> w = minimise_risk(risk, with_b).w;
  const ReleasedValue what{.name = "minimum of a perturbed objective",
                           .purpose = Stream::noise,
                           .step = 0,
                           .noise_std = 1.0 / mu_};
  if (SecretObserver* const o = observer(task.gate.release_observer())) o->before_noise(what, w);
  const std::vector<float> z = normal(1);
  const double unscaled = 1.0 / std::fmax(risk_.max_norm, 1.0);
  std::vector<float> released;
  released.reserve(w.size());
  for (std::size_t j = 0; j < w.size(); ++j)
    released.push_back(
        static_cast<float>(unscaled * (w[j] + output_noise_std_ * static_cast<double>(z[j]))));
  show_released(task.gate.release_observer(), what, std::span(released));
  return released;
}

void ObjectivePerturbation::describe_mechanism(privacy::Promise& promise,
                                               std::vector<privacy::Release> releases) const {
  promise.mechanism = "objective perturbation with Gaussian noise, approximate minimum (AMP)";
  promise.how = privacy::PerturbedObjective{.risk = minimised_risk(risk_, regulariser_, tolerance_),
                                            .noise_std = 1.0 / mu_,
                                            .sensitivity = 1.0,
                                            .kappa = kappa_,
                                            .output_noise_std = output_noise_std_,
                                            .output_sensitivity = 2.0 * tolerance_ / regulariser_,
                                            .releases = std::move(releases)};
}

MethodEntry objective_perturbation_method() {
  MethodEntry entry = linear_method_entry();
  entry.name = "objpert";
  // The proof bounds how much the random vector b of the objective must change to keep the same
  // minimum when the data change. For one example, that change is a multiple of v_i, a direction
  // that is fixed in advance. For several examples it is the sum of a_i v_i with factors a_i that
  // depend on b, so its direction is not fixed, and the proof does not hold.
  entry.units_unsupported = "objective perturbation is proved for single rows only";
  entry.uses = risk_option_keys();
  entry.complete = check_risk;
  entry.make = make_linear_method<ObjectivePerturbation>;
  return entry;
}

}  // namespace cudp
