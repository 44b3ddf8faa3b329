#pragma once
#include "runtime/methods/linear_method.hpp"
#include "runtime/methods/linear_risk.hpp"

namespace cudp {

/// Objective perturbation with an approximate minimum: Iyengar, Near, Song, Thakkar, Thakurta, Wang
/// 2019, "Towards Practical Differentially Private Convex Optimization", Algorithm 1 (AMP), of
/// Chaudhuri, Monteleoni, Sarwate 2011 (arXiv:0912.0071) with the Gaussian noise and the
/// determinant of Kifer, Smith, Thakurta 2012.
///
///   w' with |gradient of J at w'| <= tau,
///     J(w) = sum of loss(v_i . w) + Lambda / 2 |w|^2 + b . w,   b ~ N(0, (1 / mu)^2 I), |v_i| <= 1
///   release w' + N(0, (2 tau / (Lambda mu_out))^2 I)
///
/// The proof of objective perturbation is for the exact minimum w_min, which nobody computes. Given
/// that, |w' - w_min| <= tau / Lambda whatever the solver does, so for neighbours w' differs by at
/// most 2 tau / Lambda: a Gaussian mechanism. tau counts rounding (linear_risk.hpp).
///
/// Lambda = lambda N, of the public or noisy N, but at least what the determinant's part of epsilon
/// asks for: kappa = ln(1 + beta / Lambda), beta the loss's curvature, is at most epsilon / 2, as
/// in Kifer et al. Where N is private kappa is taken to be epsilon / 10, which is fixed before the
/// noisy N is drawn.
///
/// The proof needs a density of b in real numbers, and the map from b to w' to be one-to-one: it
/// does not hold of the bits of a float, and such runs are not for release.
///
/// Departs from AMP: epsilon and delta are not shared out between the two releases. Both are
/// bounded together by privacy/rdp/objective_perturbation.hpp, with mu_out = mu / 100. Its other
/// terms assume that neighbours have equally many examples; here one is added or removed.
class ObjectivePerturbation final : public LinearMethod {
 public:
  ObjectivePerturbation(const TrainConfig& config, const LinearFacts& facts);

  std::vector<privacy::Release> releases() const override;
  /// Of one example only: no proof of ours reaches several (no_units).
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
  /// The objective without its noise term b.
  RiskProblem problem() const;

  RiskSettings risk_;
  std::size_t dimension_;
  double epsilon_;
  double delta_;
  double tolerance_;  ///< tau
  double regulariser_;
  double kappa_;
  double mu_;
  double output_noise_std_;
};

MethodEntry objective_perturbation_method();

}  // namespace cudp
