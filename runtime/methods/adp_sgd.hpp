#pragma once
#include <cstdint>
#include <vector>

#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Way in which the noise multiplier is computed from epsilon: by the accountant, or by Theorem 4.1
/// of Wu et al. 2021.
enum class Calibration { accountant, theorem41 };

/// Options of method ADP-SGD: DP-SGD in which the noise of a step depends on its step size (Wu et
/// al. 2021). Symbols are those of the paper.
struct AdpSgdOptions {
  bool constant_noise = false;
  /// C in the noise of adaptive step sizes: the noise of step t is proportional to alpha_t, where
  /// alpha_t^2 = sqrt(b_0^2 + t C) (adp_noise()).
  double noise_growth = 1e-4;
  Calibration calibration = Calibration::accountant;
  /// Initial value b_0^2 of b_t^2; the learning rate of step t is divided by b_t.
  double adaptive_start = 20.0;
  /// The paper's beta: step t increases b_t^2 by beta times the squared norm of its noisy gradient,
  /// but at least by nu (adaptive_min).
  double adaptive_weight = 1.0;
  /// The paper's nu: minimum by which a step increases b_t^2. The learning rate is divided by b_t.
  double adaptive_min = 1e-5;
};

/// Method ADP-SGD: DP-SGD in which the noise of a step depends on its step size, so that the noise
/// added to the parameters falls with the root of the step size, not in proportion to it. Wu et al.
/// 2021, "Adaptive Differentially Private Empirical Risk Minimization", Algorithm 1, with Poisson
/// batches and clipping.
///
/// Differences from the paper:
/// - Equation (3) has the step size in the noise twice. This code follows Algorithm 1, line 6.
/// - The paper computes adaptive step sizes from the raw private gradient, which would reveal it.
///   Here they are computed from the released noisy gradient, which costs no privacy.
/// - The noise multiplier sigma is chosen by the accountant for the actual sequence of steps.
///   Theorem 4.1 is available to reproduce the paper's tables (theorem41_sigma).
class AdpSgd final : public EngineMethod {
 public:
  explicit AdpSgd(const MethodContext& context);
  AdpSgd(const MethodContext& context, const PrivacyPlan& plan) : EngineMethod(context, plan) {}

  StepRecipe recipe() const override;

 protected:
  void initialise(TrainState& state) const override;

 private:
  const AdpSgdOptions& options() const { return config().of<AdpSgdOptions>(); }
  bool is_adaptive() const { return config().schedule == ScheduleKind::adaptive; }
};

/// Returns alpha_t of method ADP-SGD: the noise of step t is proportional to alpha_t. Symbols: eta
/// is the config's learning rate, eta_t the learning rate of step t, b_{t+1} = eta / eta_t; b_0^2
/// is AdpSgdOptions::adaptive_start, C is noise_growth. The config selects one of three rules:
///   fixed learning rates       alpha_t^2 = b_{t+1}, the optimum of Theorem 4.2
///   adaptive                   alpha_t^2 = sqrt(b_0^2 + t C), fixed in advance (Proposition 5.2)
///   adp-constant-noise         alpha_t = 1, which is DP-SGD
double adp_noise(const TrainConfig& config, std::uint64_t steps, std::uint64_t steps_per_epoch,
                 std::uint64_t step);

/// Returns the noise multiplier alpha_0 sigma b / G that Theorem 4.1 gives, for gradients of norm
/// up to G, T steps, and batches of b out of n examples:
///   sigma^2 = (16 G)^2 log(16 T / (n delta)) log(1.25 / delta) / (n^2 epsilon^2) sum_t 1 /
///   alpha_t^2.
/// The noise of step t is proportional to alpha_t; noise: alpha_t / alpha_0, as spans of steps with
/// equal values. The result is much looser than the accountant's. The paper's tables state epsilon
/// / 16, i.e. 0.8 for an epsilon of 12.8.
double theorem41_sigma(double epsilon, double delta, double n, double batch, std::uint64_t steps,
                       const std::vector<NoiseSpan>& noise);

MethodEntry adp_sgd_method();

}  // namespace cudp
