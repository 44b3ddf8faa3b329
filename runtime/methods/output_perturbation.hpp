#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/methods/linear_method.hpp"
#include "runtime/methods/linear_risk.hpp"

namespace cudp {

/// Method outpert: output perturbation. It releases the minimum of a regularised risk with Gaussian
/// noise. Chaudhuri, Monteleoni, Sarwate 2011 (arXiv:0912.0071), Algorithm 1.
///
///   w* = argmin of sum of loss(v_i . w) + Lambda / 2 |w|^2, with examples |v_i| <= 1
///   release w* + N(0, (S / mu)^2 I)
///
/// Sensitivity S: with one more example, the gradient at w* is that example's, of norm at most 1,
/// and the objective is Lambda-strongly convex, so the minimum moves by at most 1 / Lambda. (Lambda
/// is lambda N, where lambda is the option --l2 and N the public or noisy number of examples, so it
/// is the same for neighbours.) A solver's result has a gradient of at most tau, rounding included,
/// and is at most tau / Lambda from the minimum: S = (1 + 2 tau) / Lambda, for adding and for
/// removing. Each of the d coordinates is then rounded to a multiple of g, a public power of two,
/// which changes it by at most g / 2. The minimum on a neighbouring data set is rounded as well, so
/// this adds sqrt(d) g to S, usually at most a millionth of S.
///
/// Differences from the paper: noise is Gaussian, with the mu that makes it exactly (epsilon,
/// delta)-DP (privacy/rdp/gaussian.hpp), instead of noise with density exp(-epsilon |b|).
/// Neighbours differ by one added or removed example, so the sum is minimised, not the mean, and S
/// is half of the paper's sensitivity. The optimiser is not assumed to be exact. The variant in
/// DP-AGD's paper, OutPert (Zhang et al. 2017), stops gradient descent early; this method does not.
class OutputPerturbation final : public LinearMethod {
 public:
  OutputPerturbation(const TrainConfig& config, const LinearProblem& facts);

  std::vector<privacy::Release> releases() const override;
  double epsilon_of(double rows) const override;
  std::vector<float> fit(const LinearTask& task) const override;

  double sensitivity() const { return sensitivity_; }
  double grid() const { return grid_; }
  double noise_std() const { return sensitivity_ / mu_ * (1.0 + 0x1p-50); }

 protected:
  void describe_mechanism(privacy::Promise& promise,
                          std::vector<privacy::Release> releases) const override;

 private:
  RiskProblem problem() const { return {.regulariser = regulariser_, .tolerance = tolerance_}; }

  RiskSettings risk_;
  std::size_t dimension_;
  double delta_;
  double tolerance_;    ///< tau, maximum norm of the objective's gradient at the computed minimum
  double regulariser_;  ///< Lambda, weight of the regulariser
  double mu_;
  double grid_;
  double sensitivity_;  ///< S, L2 sensitivity of the computed minimum
};

MethodEntry output_perturbation_method();

}  // namespace cudp
