#pragma once
#include "runtime/methods/linear_method.hpp"
#include "runtime/methods/linear_risk.hpp"

namespace cudp {

/// Method objpert: objective perturbation with an approximate minimum. Iyengar, Near, Song,
/// Thakkar, Thakurta, Wang 2019, "Towards Practical Differentially Private Convex Optimization",
/// Algorithm 1 (AMP), based on Chaudhuri, Monteleoni, Sarwate 2011 (arXiv:0912.0071), with the
/// Gaussian noise and the determinant of Kifer, Smith, Thakurta 2012.
///
///   minimise J(w) = sum of loss(v_i . w) + Lambda / 2 |w|^2 + b . w,
///       with examples |v_i| <= 1 and noise b ~ N(0, (1 / mu)^2 I);
///   stop at a w' with |gradient of J at w'| <= tau
///   release w' + N(0, (2 tau / (Lambda mu_out))^2 I)
///
/// The second noise is needed because the proof of objective perturbation is for the exact minimum
/// w_min, which is never computed. |w' - w_min| <= tau / Lambda for any solver, so given w_min, w'
/// differs between neighbours by at most 2 tau / Lambda, and the second release is a Gaussian
/// mechanism. tau includes rounding (linear_risk.hpp).
///
/// Lambda = lambda N, where lambda is the option --l2 and N the public or noisy number of examples.
/// It must be so large that kappa = ln(1 + beta / Lambda), the determinant's part of epsilon, is at
/// most epsilon / 2, as in Kifer et al.; beta is the loss's curvature. If N is private, kappa is
/// set to epsilon / 10, which is fixed before the noisy N is drawn.
///
/// The proof needs a density of b in real numbers, and a one-to-one map from b to w'. It does not
/// hold for the bits of a float, so the models of such runs must not be released.
///
/// Differences from AMP: epsilon and delta are not divided between the two releases;
/// privacy/rdp/objective_perturbation.hpp bounds both together, with mu_out = mu / 100. AMP's other
/// terms assume neighbours with equally many examples; here one example is added or removed.
class ObjectivePerturbation final : public LinearMethod {
 public:
  ObjectivePerturbation(const TrainConfig& config, const LinearProblem& facts);

  std::vector<privacy::Release> releases() const override;
  /// Returns the run's epsilon, whatever the argument: the proof covers only neighbours that differ
  /// by one example, so units of privacy with several examples are not supported.
  double epsilon_of(double) const override { return epsilon_; }
  std::vector<float> fit(const LinearTask& task) const override;
  std::vector<std::string> obstacles() const override;

  double mu() const { return mu_; }
  double kappa() const { return kappa_; }
  double regulariser() const { return regulariser_; }

 protected:
  void describe_mechanism(privacy::Promise& promise,
                          std::vector<privacy::Release> releases) const override;

 private:
  /// Returns the objective to minimise, without its random linear term (the noise times the
  /// weights).
  RiskProblem problem() const;

  RiskSettings risk_;
  std::size_t dimension_;
  double epsilon_;
  double delta_;
  double tolerance_;  ///< tau, maximum norm of the objective's gradient at the computed minimum
  double regulariser_;
  double kappa_;
  double mu_;
  double output_noise_std_;
};

MethodEntry objective_perturbation_method();

}  // namespace cudp
