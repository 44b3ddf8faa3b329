#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/engine.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/schedule.hpp"

namespace cudp {

/// The base of the methods that train by noisy sums of clipped gradients of Poisson batches: DP-SGD
/// and what descends from it. What each does in a step is its recipe().
class EngineMethod : public Method {
 public:
  double epsilon() const override;
  double epsilon_of_one_example() const override;
  double delta() const override;
  std::optional<privacy::Budget> filter() const override;
  std::uint64_t steps() const override { return plan_.steps; }
  std::uint64_t steps_per_epoch() const override;
  std::string describe() const override;

  void start(const TrainingInputs& inputs, const PrivacyBudget& budget) override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  MethodState state() const override;
  bool accounts_for(const privacy::Ledger& ledger, std::uint64_t step,
                    double epsilon) const override;
  void fresh_key(PrivacyBudget& budget, std::uint64_t step) override;

  std::uint64_t last_step(const PrivacyBudget& budget, std::uint64_t step) const override;
  std::uint64_t authorise(PrivacyBudget& budget, std::uint64_t step, std::uint64_t until) override;
  std::uint64_t train(std::uint64_t step, std::uint64_t until) override;

  std::vector<float> parameters() const override;

  double learning_rate(std::uint64_t step) const override;
  std::function<double()> spent(const privacy::Ledger& ledger, std::uint64_t step,
                                bool last) const override;
  double examples_per_step() const override { return plan_.expected_batch; }
  Outcome outcome(std::uint64_t step) const override;
  privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const override;
  std::optional<privacy::Groups> groups(const privacy::Ledger& ledger) const override;
  privacy::Ledger planned(privacy::Ledger ledger, std::uint64_t last) const override;
  Diagnostics diagnostics() override { return engine_->diagnostics(); }

  const PrivacyPlan& plan() const { return plan_; }

  /// A step, in the order of the method's paper. Its numbers may follow what was released.
  virtual StepRecipe recipe() const = 0;
  /// The numbers of step t; the schedule's, but for a method that has others.
  virtual StepScalars scalars(std::uint64_t t) const { return schedule_.at(t); }
  /// Makes steps first <= t < last on an engine that is laid out for the recipe.
  void run(Engine& engine, std::uint64_t first, std::uint64_t last) const;

 protected:
  EngineMethod(MethodContext context, const PrivacyPlan& plan);

  // What an engine needs beside the plan, and where it starts.

  virtual void configure(EngineSettings&) const {}
  virtual void initialise(TrainState&) const {}

  // Releases, for a method that does not have them all in its plan.

  /// Before step `step`, where the steps before are done: whatever has to be measured and released
  /// first. False where the budget ends here.
  virtual bool prepare(PrivacyBudget&, std::uint64_t) { return true; }
  /// One past the last step, from `step` on, that is known without another call of prepare.
  virtual std::uint64_t prepared_until(std::uint64_t) const { return plan_.steps; }
  /// The releases of prepared steps first <= t < last.
  virtual std::vector<privacy::Release> releases_of(std::uint64_t first, std::uint64_t last) const {
    return step_releases(plan_, first, last);
  }
  /// The charge of one step.
  Charge charge_of(std::uint64_t step) const;
  /// Asks the gate for steps first <= t < last, before an engine draws their noise: they were
  /// authorised ahead, so that it costs nothing. Throws std::logic_error where it says no.
  void pass_gate(std::uint64_t first, std::uint64_t last) const;
  /// The number of a step's release in the ledger.
  virtual std::uint64_t ledger_index(std::uint64_t step) const { return step; }

  // The certificate.

  /// Whether all releases, and their number, were fixed before the first of them, so that the
  /// accountant's bound of them holds. It does not where they follow from a noisy number of
  /// examples, or from what a filter admits; nor once a key was lost, since whoever renews it
  /// decides how many steps there are (privacy/README.md, What a fresh key allows).
  bool is_fixed_ahead() const;
  /// The epsilon that the run may state, `bound` being that of its releases: the budget's, which
  /// was stated before the first of them, unless they were fixed ahead. Every statement goes
  /// through these two.
  double stated(const privacy::PrivacyBound& bound) const;

  virtual std::string mechanism() const;
  virtual std::string sampling() const { return "poisson"; }
  /// Says what gradients are clipped, or what C is, where that needs saying.
  virtual void describe_clipping(privacy::NoisySums&) const {}

  const TrainConfig& config() const { return context_.config; }
  const MethodContext& context() const { return context_; }
  const Schedule& schedule() const { return schedule_; }
  Engine& engine() const { return *engine_; }
  Gate& gate() const { return *gate_; }
  Ranks& ranks() const { return *ranks_; }

 private:
  void make_engine(const TrainingInputs& inputs);
  std::uint64_t steps_charged(const privacy::Ledger& ledger) const;

  MethodContext context_;
  PrivacyPlan plan_;
  Schedule schedule_;
  std::unique_ptr<Engine> engine_;
  Gate* gate_ = nullptr;
  Ranks* ranks_ = nullptr;
};

/// Keys of the options that all of these methods have, but for "clip".
std::vector<std::string> engine_method_options();

}  // namespace cudp
