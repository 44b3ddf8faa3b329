#pragma once
#include <cstdint>

#include "models/model.hpp"
#include "privacy/filter.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// DPIS: Wei, Bao, Xiao, Yang 2022, "DPIS: An enhanced mechanism for differentially private SGD
/// with importance sampling", Algorithm 1. Examples of large gradients are drawn more often, and
/// count the same when they are: the noise is that of K~ / N~, the mean norm, in place of C.
///
/// Departs from the paper:
/// (a) the weight of an example is b / (N~ P(included)), as in equation (7); line 26 lacks the b.
/// (b) ghat is capped at K~ / b, where a candidate is certain. The paper trusts that K~ > k b C;
/// where
///     that fails a weighted norm exceeds K~ / N~, and with it what the proof rests on.
/// (c) K' is summed over all examples (p_K = 1), whose norms are there at the start of an epoch.
///     With p_K < 1 equation (11) has sensitivity C / p_K where equation (19) accounts for C.
/// (d) sigma_G depends on noisy releases, so the composition is adaptive: a Renyi filter at the
/// best
///     order of the worst-case plan, fixed before training, admits every release
///     (privacy/filter.hpp).
/// (e) N~ is the run's own size: N where that is public, else the noisy one that the run pays for.
/// Accepted gradients are summed at norm 1; the step's 1 / b is K~ / (N~ b), and the noise
/// multiplier s = sigma_G C N~ / K~.
class Dpis final : public Method {
 public:
  Dpis(const TrainConfig& config, const Schedule& schedule, const PrivacyPlan& plan, double size,
       std::uint64_t steps_per_epoch, const Network& network, const Arithmetic& arithmetic,
       DpisEpoch& epoch);

  /// At the start of an epoch: lines 5 to 17, and the choice of sigma_G.
  bool prepare(Engine& engine, std::uint64_t step, const Charging& charging) override;
  std::uint64_t prepared_until(std::uint64_t step) const override;
  std::vector<privacy::Phase> phases(std::uint64_t first, std::uint64_t last) const override;
  std::uint64_t place(std::uint64_t step) const override;
  void run(Engine& engine, std::uint64_t first, std::uint64_t last) const override;

  /// Of this epoch.
  ImportanceRule rule() const;
  double rate() const;              ///< q_e = b C / K~, which no inclusion probability exceeds
  double noise_multiplier() const;  ///< s_e = sigma_G C N~ / K~
  /// What rounding adds to the norm of an accepted gradient in a sum, relative:
  /// sensitivity_rounding_error with a bound on the number of accepted examples. Each is accepted
  /// by its norm at that step, which may be C whatever it was at the start of the epoch: with
  /// probability q_e at most.
  double slack() const;

 private:
  std::uint64_t epoch_of(std::uint64_t step) const { return step / steps_per_epoch_; }
  std::uint64_t epochs() const;
  std::uint64_t width() const { return steps_per_epoch_ + releases_; }
  double next_clip(Engine& engine, std::uint64_t epoch) const;
  bool choose_sigma(std::uint64_t first, double left);
  double cost(double q, double sigma) const;

  TrainConfig config_;
  Schedule schedule_;
  PrivacyPlan plan_;
  double size_;
  std::uint64_t steps_per_epoch_;
  Network network_;
  Arithmetic arithmetic_;
  std::uint64_t releases_;  ///< besides the steps, an epoch
  DpisEpoch& epoch_;
};

/// The divergence that a run has left when only these releases were charged; see DpisEpoch::left.
double divergence_left(const privacy::Ledger& ledger);

}  // namespace cudp
