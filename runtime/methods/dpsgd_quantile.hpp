#pragma once
#include <cstdint>
#include <optional>

#include "runtime/gate/gate.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Options of method dpsgd-quantile: DP-SGD whose clipping norm follows a quantile of the
/// gradients' norms (Andrew et al. 2021). Symbols are those of the paper.
struct QuantileOptions {
  /// The paper's gamma: the clipping norm follows the gamma-quantile of the gradients' norms.
  double target = 0.5;
  double lr = 0.2;  ///< eta_C, learning rate of the logarithm of the clipping norm C
  /// Fraction s of the privacy cost, measured as 1 / sigma^2, that is spent on the noisy count of
  /// unclipped gradients. The sum of gradients gets 1 - s.
  double noise_share = 0.01;
  double min_clip = 1e-3;  ///< public lower bound of C; max_clip is the upper one
  double max_clip = 1e3;
  /// Whether a step divides its noisy mean gradient by its clipping norm C_t before the update, so
  /// that steps do not shrink with the clipping norm.
  bool normalised = false;
};

/// Method dpsgd-quantile: DP-SGD whose clipping norm follows a quantile of the gradients' norms.
/// Andrew, Thakkar, Ramaswamy, McMahan 2021 (arXiv:1905.03871), Algorithm 1, for examples instead
/// of users, with Poisson batches.
///
/// A step releases two noisy sums over one batch. g_i: gradient of example i; C_t: clipping norm;
/// b: expected batch size; s: --quantile-noise; gamma, eta_C: QuantileOptions.
/// - The sum of clipped gradients / C_t, with noise multiplier z_g = sigma / sqrt(1 - s).
/// - A count, the sum of b_i - 1/2, where b_i = 1 if |g_i| <= C_t, else 0. One example changes it
///   by 1/2. Its noise is sigma_b = sigma / (2 sqrt(s)).
///
/// Because 1 / z_g^2 + 1 / (2 sigma_b)^2 = 1 / sigma^2 (their Theorem 1), both together are one
/// Gaussian mechanism with noise multiplier sigma. The next clipping norm depends on released
/// values only:
///   C_{t+1} = C_t exp(-eta_C (noisy count / b + 1/2 - gamma)), within public bounds. C_1 is
///   --clip.
///
/// Differences from the paper: a gradient that is not finite counts as clipped, and contributes
/// nothing to the sum. With --quantile-normalise a step divides its noisy gradient by C_t, so that
/// steps do not become smaller with the gradients (the normalisation of automatic clipping, Bu et
/// al. 2022, with C_t instead of the example's own norm).
class DpSgdQuantile final : public EngineMethod {
 public:
  explicit DpSgdQuantile(const MethodContext& context);
  DpSgdQuantile(const MethodContext& context, const PrivacyPlan& plan);

  MethodState state() const override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  std::uint64_t train(std::uint64_t step, std::uint64_t until) override;
  privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const override;
  Diagnostics diagnostics() override {
    seen_ += engine().diagnostics();
    return std::exchange(seen_, {});
  }

  StepRecipe recipe() const override;
  /// Returns the scalars of step t (learning rate, noise, factors on gradients) for the current
  /// clipping norm.
  StepScalars scalars(std::uint64_t t) const override;

  double clip_norm() const { return clip_norm_; }  ///< C_t, clipping norm of the next step
  double gradient_noise_multiplier() const;  ///< z_g, noise multiplier of the sum of gradients
  /// Returns sigma_b, the standard deviation of the noise on the count of unclipped gradients.
  double count_noise() const;

 protected:
  void configure(EngineSettings& settings) const override { settings.diagnostics = true; }
  std::string mechanism() const override;

 private:
  const QuantileOptions& options() const { return config().of<QuantileOptions>(); }
  ClipRule rule() const;
  /// Returns the description (name, noise, charge) of the release of step t's noisy count, for the
  /// gate. The count is the sum over the batch of b_i - 1/2, where b_i = 1 if gradient i is not
  /// clipped, else 0.
  GaussianRelease count_release(std::uint64_t t) const;
  /// Makes step t alone, not as part of a recorded sequence. Used if the training has a release
  /// observer, which then receives the step's released sums.
  void train_watched(std::uint64_t t);

  float clip_norm_;
  Diagnostics seen_;
};

MethodEntry dpsgd_quantile_method();

}  // namespace cudp
