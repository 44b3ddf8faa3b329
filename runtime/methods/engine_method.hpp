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

/// Base of the methods that train with noisy sums of clipped gradients of random batches: DP-SGD
/// and its variants. A derived class defines its step in recipe().
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

  bool read_all_rows(std::uint64_t step, const RowUse& use) override {
    return engine_->read_all_rows(step, recipe().draw, use);
  }
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

  /// Returns the description of a step: sampling, clipping, noise and update, in the order in which
  /// the method's paper has them. It may depend on values released so far.
  virtual StepRecipe recipe() const = 0;
  /// Returns the scalars of step t, such as learning rate and noise. By default they are those of
  /// the schedule, which is fixed in advance.
  virtual StepScalars scalars(std::uint64_t t) const { return schedule_.at(t); }
  /// Makes training steps first <= t < last on the engine, the code that computes steps on a
  /// device. The engine must have been made for recipe().
  void run(Engine& engine, std::uint64_t first, std::uint64_t last) const;

 protected:
  EngineMethod(MethodContext context, const PrivacyPlan& plan);

  // Functions that a derived class overrides to set engine settings that do not follow from the
  // privacy plan, and to change the initial training state. The defaults change nothing.

  virtual void configure(EngineSettings&) const {}
  virtual void initialise(TrainState&) const {}

  // For methods that make releases in addition to those in the privacy plan.

  /// Makes the additional releases that must precede step t (the second argument), e.g. noisy sums
  /// at the start of an epoch, and charges them. Requires that all steps before t are done. Returns
  /// false if the budget does not suffice. The default makes no releases.
  virtual bool prepare(PrivacyBudget&, std::uint64_t) { return true; }
  /// Returns the first step after step t (the argument) before which prepare() must be called
  /// again.
  virtual std::uint64_t prepared_until(std::uint64_t) const { return plan_.steps; }
  /// Returns the releases that steps first <= t < last make. Requires that prepare() was called for
  /// these steps.
  virtual std::vector<privacy::Release> releases_of(std::uint64_t first, std::uint64_t last) const {
    return step_releases(plan_, first, last);
  }
  /// Returns the charge for the release of a step: mechanism and index in the ledger.
  Charge charge_of(std::uint64_t step) const;
  /// Makes the gate check that the ledger has charges for steps first <= t < last. Call it before
  /// an engine (the code that computes steps on a device) draws the noise of these steps. Charges
  /// nothing. Throws std::logic_error if a step has not been charged.
  void pass_gate(std::uint64_t first, std::uint64_t last) const;
  /// Returns the index of a step's release in the ledger.
  virtual std::uint64_t ledger_index(std::uint64_t step) const { return plan_.release_of(step); }
  /// Returns the number of releases, from the beginning of the ledger, that the steps before `step`
  /// use. (With random allocation one release is a whole epoch.)
  std::uint64_t ledger_until(std::uint64_t step) const {
    return plan_.epoch_steps > 0 ? plan_.releases_until(step) : ledger_index(step);
  }

  // Certificate.

  /// Returns whether all releases of the run, and their number, were fixed before the first of
  /// them, which is the condition of the accountant's bound. There are three exceptions: the
  /// releases depend on a noisy number of examples; a filter decides during training which releases
  /// are made; or the random key was lost, because the user who provides a new key decides how many
  /// steps there are (privacy/README.md, What a fresh key allows).
  bool is_fixed_ahead() const;
  /// Returns the epsilon to state for the run. bound: the accountant's bound on its releases. If
  /// the releases were fixed in advance, the result is this bound's epsilon; otherwise it is the
  /// epsilon of the budget, which was stated before the first release. All code that states an
  /// epsilon must use this function.
  double stated(const privacy::PrivacyBound& bound) const;

  virtual std::string mechanism() const;
  virtual std::string sampling() const { return plan_.epoch_steps > 0 ? "allocation" : "poisson"; }
  /// Adds to the certificate's description of the noisy gradient sums how the clipping norm C is
  /// determined, or what is clipped instead of gradients. The default adds nothing: gradients are
  /// clipped to the C of the settings.
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

/// Returns the keys of the options that all methods derived from EngineMethod have, except "clip".
std::vector<std::string> engine_method_options();

}  // namespace cudp
