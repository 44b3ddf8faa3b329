#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/gate/gate.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Options of method DPIS: DP-SGD with importance sampling, i.e. examples with larger gradients are
/// drawn more often (Wei et al. 2022). Symbols are those of the paper.
struct DpisOptions {
  /// Ratio k of the number of candidates to the batch size. About k times the batch size of
  /// examples are drawn as candidates, with probabilities from their older gradient norms; each is
  /// then accepted or rejected by its current norm.
  double multiple = 5.0;
  /// Smallest gradient norm that sampling probabilities use, as a fraction of the clipping norm:
  /// g_L / C. An example with a smaller norm is drawn as if it had this one.
  double floor = 0.01;
  /// Standard deviation of the noise on the sum of gradient norms, as a fraction of the clipping
  /// norm times the number N~ of examples: sigma_K / N~.
  double total_noise = 0.02;
  /// Fraction of the epochs, counted from the first, for which the noise is chosen as if all
  /// gradients in later epochs had norm C (the worst case). In the other epochs it is chosen as if
  /// later epochs were like the current one.
  double first_phase = 0.8;
  /// Whether the clipping norm of the next epoch is `lambda` times the noisy mean of the gradient
  /// norms: their noisy sum divided by the number of examples.
  bool adaptive_clip = false;
  double lambda = 1.0;
};

/// Parameters of one epoch of DPIS. All of them are public: computed from released values.
struct DpisEpoch {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t epoch = kNone;  ///< index of the epoch
  double clip_norm = 0.0;       ///< C_e, clipping norm of the epoch
  double total = 0.0;           ///< K~, noisy sum of the gradient norms of all examples
  double sigma = 0.0;           ///< sigma_G, noise multiplier of the steps
  /// Budget that is left after all releases of this epoch, measured as a Renyi divergence [nats].
  double left = 0.0;
};

/// Method DPIS, DP-SGD with importance sampling: examples are drawn with probabilities proportional
/// to their gradient norms, and the drawn gradients are scaled to equal norms. The noise is then
/// proportional to the mean norm K~ / N~ instead of the clipping norm C. K~: noisy sum of all
/// gradient norms; N~: number of examples, noisy if it is private; b: expected batch size. Wei,
/// Bao, Xiao, Yang 2022, "DPIS: An enhanced mechanism for differentially private SGD with
/// importance sampling", Algorithm 1.
///
/// Differences from the paper:
/// - The weight of an example is b / (N~ P(included)), as in equation (7); line 26 lacks the b.
/// - The norm that determines the probability of an example is capped at K~ / b, for which the
///   probability is 1. The paper assumes K~ > k b C; without that, a weighted norm could exceed K~
///   / N~, on which the proof rests.
/// - K', the noisy sum of norms, is over all examples (p_K = 1), whose norms are known at the start
///   of an epoch. With p_K < 1 equation (11) has sensitivity C / p_K, but equation (19) accounts
///   for C.
/// - The steps' noise multiplier sigma_G depends on noisy releases, so the composition is adaptive.
///   A Renyi filter admits every release (privacy/filter.hpp), at the best order of the worst-case
///   plan, which is fixed before training.
/// - Accepted gradients are summed at norm 1. The sum is multiplied by K~ / (N~ b) instead of 1 /
///   b, and its noise multiplier is s = sigma_G C N~ / K~.
class Dpis final : public EngineMethod {
 public:
  explicit Dpis(const MethodContext& context);
  Dpis(const MethodContext& context, const PrivacyPlan& plan);

  std::optional<privacy::Budget> filter() const override;
  void start(const TrainingInputs& inputs, const PrivacyBudget& budget) override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  MethodState state() const override;
  void fresh_key(PrivacyBudget& budget, std::uint64_t step) override;

  StepRecipe recipe() const override;
  /// Returns the scalars of step t: learning rate, noise, factors on gradients. Requires that
  /// prepare() was called for the epoch of t.
  StepScalars scalars(std::uint64_t t) const override;

  /// Returns the parameters of the epoch that prepare() was last called for.
  const DpisEpoch& epoch() const { return epoch_; }
  ImportanceRule rule() const;
  /// Returns q_e = b C / K~, an upper bound on the probability with which an example is in a batch
  /// of this epoch. b: expected batch size; C: clipping norm; K~: noisy sum of all gradient norms.
  double rate() const;
  /// Returns s_e = sigma_G C N~ / K~, the noise multiplier of this epoch's steps, which sum
  /// gradients of norm 1. sigma_G: noise multiplier for sums of norm C; N~: number of examples; K~:
  /// noisy sum of all gradient norms.
  double noise_multiplier() const;

 protected:
  /// Makes the releases that precede an epoch, noisy sums of gradient norms (lines 5 to 17 of the
  /// algorithm), and chooses sigma_G for the epoch's remaining steps. Called at the start of an
  /// epoch, and at `step` if the epoch restarts there with a new random key. Returns false if the
  /// budget is spent.
  bool prepare(PrivacyBudget& budget, std::uint64_t step) override;
  std::uint64_t prepared_until(std::uint64_t step) const override;
  std::vector<privacy::Release> releases_of(std::uint64_t first, std::uint64_t last) const override;
  /// Returns the step's index in the ledger. The entries of an epoch are, in order: the release of
  /// its sum of norms (and one more if the clipping norm adapts), and its steps. If an epoch
  /// restarts in its middle, these releases are repeated, and take the indices just before that of
  /// the next step, so that the steps keep their indices.
  std::uint64_t ledger_index(std::uint64_t step) const override;
  std::string mechanism() const override;
  std::string sampling() const override { return "importance"; }

 private:
  const DpisOptions& options() const { return config().of<DpisOptions>(); }
  double size() const { return context().size.value; }
  std::uint64_t epoch_of(std::uint64_t step) const { return step / steps_per_epoch(); }
  std::uint64_t epochs() const;
  std::uint64_t epoch_releases() const { return options().adaptive_clip ? 2 : 1; }
  std::uint64_t width() const { return steps_per_epoch() + epoch_releases(); }
  /// Returns the clipping norm of epoch `epoch`. If it is adaptive, first releases the noisy sum of
  /// norms from which it is computed. number: index of that release in the ledger.
  double next_clip(std::uint64_t epoch, std::uint64_t number);
  /// Returns the noisy sum over examples of min(norm_i, max_norm), with noise N(0, (sigma_K
  /// max_norm)^2), after releasing it through the gate. name: name of the sum, for the release
  /// observer. purpose, epoch: random stream of the noise. number: index of the release in the
  /// ledger.
  double noisy_total(const char* name, Stream purpose, std::uint64_t epoch, std::uint64_t number,
                     double max_norm);
  bool choose_sigma(std::uint64_t first, double left);
  double cost(double q, double sigma) const;

  DpisEpoch epoch_;
};

MethodEntry dpis_method();

}  // namespace cudp
