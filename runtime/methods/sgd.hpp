#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Options of training without privacy (Sgd).
struct SgdOptions {
  std::string compare_with;  ///< folder of a finished private run; empty for none
};

/// Stochastic gradient descent without privacy, for comparison: the steps of DP-SGD without
/// clipping and noise. A run has no certificate and releases nothing.
///
/// The engine can only sum clipped gradients, because its grid depends on the clipping norm. So a
/// step is tried with a large clipping norm, 64. If a gradient was clipped, the step is repeated
/// with twice the clipping norm, until none is clipped.
class Sgd final : public EngineMethod {
 public:
  explicit Sgd(const MethodContext& context);

  double epsilon() const override;
  double epsilon_of_one_example() const override { return epsilon(); }
  double delta() const override { return 1.0; }
  std::string describe() const override;
  std::vector<std::string> obstacles() const override;

  void start(const TrainingInputs& inputs, const PrivacyBudget& budget) override;
  MethodState state() const override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  void fresh_key(PrivacyBudget&, std::uint64_t) override {}
  std::uint64_t last_step(const PrivacyBudget&, std::uint64_t) const override { return steps(); }
  std::uint64_t authorise(PrivacyBudget&, std::uint64_t, std::uint64_t until) override {
    return until;  // there is no budget
  }
  /// Makes steps `step` to `until` - 1 and returns `until`. Throws Error if a gradient is not
  /// finite.
  std::uint64_t train(std::uint64_t step, std::uint64_t until) override;
  std::function<double()> spent(const privacy::Ledger&, std::uint64_t, bool) const override {
    return [epsilon = epsilon()] { return epsilon; };
  }
  Outcome outcome(std::uint64_t step) const override {
    return {.steps = step, .compared_with = compared_with_};
  }
  privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const override;
  privacy::Ledger planned(privacy::Ledger ledger, std::uint64_t) const override {
    return ledger;  // without privacy nothing is charged
  }
  Diagnostics diagnostics() override { return std::exchange(seen_, {}); }

  StepRecipe recipe() const override;
  StepScalars scalars(std::uint64_t t) const override;

 protected:
  void configure(EngineSettings& settings) const override { settings.diagnostics = true; }

 private:
  void one_step(std::uint64_t step);
  /// Makes steps first <= t < last with gradients clipped to clip_norm. Returns true if no gradient
  /// was clipped, so that the result is exact; false otherwise.
  bool nothing_clipped(std::uint64_t first, std::uint64_t last, float clip_norm);

  /// Current clipping norm. It is doubled until no gradient of the step is longer.
  float clip_norm_;
  /// Result of the private run of --compare-with; nullopt if there is none.
  std::optional<Comparison> compared_with_;
  Diagnostics seen_;
};

MethodEntry sgd_method();

}  // namespace cudp
