#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/gate/gate.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

struct DpisOptions {
  double multiple = 5.0;       ///< k, candidates for each example of the batch
  double floor = 0.01;         ///< g_L / C, least norm that examples are drawn by
  double total_noise = 0.02;   ///< sigma_K / N~
  double first_phase = 0.8;    ///< share of the epochs that save for the worst case
  bool adaptive_clip = false;  ///< C_{e+1} = lambda K*_e / N~
  double lambda = 1.0;
};

/// The numbers of an epoch of DPIS: functions of released values alone.
struct DpisEpoch {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t epoch = kNone;  ///< which
  double clip = 0.0;            ///< C_e
  double total = 0.0;           ///< K~
  double sigma = 0.0;           ///< sigma_G
  double left = 0.0;  ///< of the budget's divergence, when this epoch's releases are all made
};

/// DPIS: Wei, Bao, Xiao, Yang 2022, "DPIS: An enhanced mechanism for differentially private SGD
/// with importance sampling", Algorithm 1. Examples of large gradients are drawn more often, and
/// count the same when they are: the noise is that of K~ / N~, the mean norm, in place of C.
///
/// Departs from the paper:
/// - The weight of an example is b / (N~ P(included)), as in equation (7); line 26 lacks the b.
/// - ghat is capped at K~ / b, where a candidate is certain. The paper trusts that K~ > k b C;
///   where that fails a weighted norm exceeds K~ / N~, and with it what the proof rests on.
/// - K' is summed over all examples (p_K = 1), whose norms are there at the start of an epoch.
///   With p_K < 1 equation (11) has sensitivity C / p_K where equation (19) accounts for C.
/// - sigma_G depends on noisy releases, so the composition is adaptive: a Renyi filter at the best
///   order of the worst-case plan, fixed before training, admits every release
///   (privacy/filter.hpp).
/// - N~ is the run's own size: N where that is public, else the noisy one that the run pays for.
/// Accepted gradients are summed at norm 1; the step's 1 / b is K~ / (N~ b), and the noise
/// multiplier s = sigma_G C N~ / K~.
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
  /// The numbers of a step of the epoch that is prepared.
  StepScalars scalars(std::uint64_t t) const override;

  /// Noise multiplier and rates of this epoch.
  const DpisEpoch& epoch() const { return epoch_; }
  ImportanceRule rule() const;
  double rate() const;              ///< q_e = b C / K~, which no inclusion probability exceeds
  double noise_multiplier() const;  ///< s_e = sigma_G C N~ / K~

 protected:
  /// At the start of an epoch, and where it begins anew under a fresh key: lines 5 to 17, and the
  /// choice of sigma_G for the steps that the epoch has left.
  bool prepare(PrivacyBudget& budget, std::uint64_t step) override;
  std::uint64_t prepared_until(std::uint64_t step) const override;
  std::vector<privacy::Release> releases_of(std::uint64_t first, std::uint64_t last) const override;
  /// In the ledger an epoch is: its K release (two releases where the clipping norm adapts), then
  /// its steps. Where it begins anew in its middle these releases take the numbers just before the
  /// step's, so that the step has its own number again.
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
  /// number: of its release in the ledger.
  double next_clip(std::uint64_t epoch, std::uint64_t number);
  /// sum_i min(norm_i, most) + N(0, (sigma_K most)^2).
  double noisy_total(const char* name, Stream purpose, std::uint64_t epoch, std::uint64_t number,
                     double max_norm);
  bool choose_sigma(std::uint64_t first, double left);
  double cost(double q, double sigma) const;

  DpisEpoch epoch_;
};

MethodEntry dpis_method();

}  // namespace cudp
