#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/results/holdout_figures.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/training/observer.hpp"
#include "runtime/training/order.hpp"
#include "runtime/training/pending_rows.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// All that a training needs to go on as if it had never stopped, but for its experiment and key.
/// The generator's position is the step: every random number is addressed by it.
struct TrainingState {
  std::uint64_t step = 0;  ///< steps done
  MethodState method;
  TrainingSize size;
  privacy::Ledger ledger;
  std::vector<PrivacyBudget::Taken> taken;    ///< of what was charged without a number
  std::vector<privacy::NoisyValue> released;  ///< by the gate
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;                ///< of training so far
  std::vector<float> feature_release;  ///< as Experiment has it
  std::optional<SharedKey> coins;      ///< as Experiment has it
};

/// A training in progress. It needs no folder, no terminal and no file: who keeps or shows
/// something of it observes it. Everything is released through its gate, and charged before.
class Training {
 public:
  /// Counts the examples, plans, releases what features rest on, and starts the method. `observer`
  /// and `witness`, who is shown what leaves, or null, outlive the training. Throws InputError,
  /// also where the witness is an observer and the training not seeded; BudgetError where settings
  /// and size allow no training.
  static std::unique_ptr<Training> begin(Experiment experiment, SharedKey key,
                                         TrainingObserver& observer, Witness* witness = nullptr);

  /// Goes on where `state` was taken, of the same experiment, whose data are as prepare() left
  /// them. same_key: `key` is the one that the training began with; if not, pay_again() must come
  /// before advance(). Throws BudgetError where the budget allows no step more.
  static std::unique_ptr<Training> resume(Experiment experiment, SharedKey key,
                                          TrainingObserver& observer, TrainingState state,
                                          bool same_key, Witness* witness = nullptr);

  /// Charges again what will be repeated under a key of its own. Throws BudgetError where that is
  /// not possible.
  void pay_again();

  /// Trains to the end, or until the observer interrupts. Throws BudgetError where the budget
  /// allows not one step.
  void advance();

  bool is_finished() const { return last_step_ == step_; }

  const Experiment& experiment() const { return experiment_; }
  const RandomKey& key() const { return key_.key(); }
  const TrainingSize& size() const { return size_; }
  Witness* witness() const { return gate_.witness(); }
  const Method& method() const { return *method_; }
  const privacy::Ledger& ledger() const { return budget_.ledger(); }
  const privacy::Filter* filter() const { return budget_.filter(); }
  std::uint64_t step() const { return step_; }  ///< steps done
  /// The step that it will stop at: the method's steps, or what the budget allows.
  std::uint64_t last_step() const { return last_step_.value(); }
  const std::vector<MetricsRow>& metrics() const { return metrics_; }
  double seconds() const { return seconds_; }  ///< of training so far

  /// For a checkpoint.
  TrainingState state() const;
  /// Throws RanksError where ranks have come to different models.
  void agree() const { (void)joined_state(); }
  /// By a rank that does not lead: does what rank 0 does, until that stops.
  void follow(Order order);

  /// The certificate of a training that ends here.
  privacy::Certificate certificate() const;
  /// The certificate of the plan: of what it will have spent when it ends as planned. It says that
  /// it is not finished.
  privacy::Certificate plan_certificate() const;
  /// The model as it may be published.
  ReleasedModel model() const;
  /// What is said of held-out rows: the plan, from when there is one, and the figures, once the
  /// training is finished.
  const HoldoutPlan& holdout_plan() const { return holdout_plan_; }
  const std::optional<HoldoutFigures>& holdout_figures() const { return holdout_figures_; }
  /// How well the model does on the test set; empty where there is none. Held-out rows are one,
  /// even where there are none of them.
  std::optional<Evaluation> evaluate();

 private:
  class Loop;

  Training(Experiment experiment, SharedKey key, TrainingObserver& observer, Witness* witness,
           privacy::Ledger ledger, std::vector<PrivacyBudget::Taken> taken,
           std::vector<privacy::NoisyValue> released);

  std::unique_ptr<Method> make_method() const;
  Ranks& ranks() const { return *experiment_.ranks; }
  /// The method's state, of all ranks.
  MethodState joined_state() const;
  /// The logits of this rank's test examples, and on rank 0 those of all.
  std::vector<float> joined_logits();
  TrainingInputs inputs();
  void plan();
  /// size_noise: of the release of the number of training examples.
  void plan_holdout(double size_noise);
  /// Says of the held-out rows what the plan allows, once. Their noise is the run's own: under the
  /// same key it is the same figures again.
  void release_holdout();
  /// Begins a row, unless this step has one.
  void measure_once();
  void measure();
  /// The row of a training's epsilon, with what is promised of held-out rows.
  MetricsRow with_holdout(MetricsRow row) const;
  /// Adds rows whose epsilon is known.
  void add(const std::vector<MetricsRow>& rows);
  /// The model's answers to the test set.
  Predictions answers();

  Experiment experiment_;
  SharedKey key_;
  TrainingObserver& observer_;
  PrivacyBudget budget_;
  Gate gate_;
  TrainingSize size_;
  std::unique_ptr<Method> method_;
  privacy::Certificate with_holdout(privacy::Certificate certificate) const;

  HoldoutPlan holdout_plan_;
  std::optional<HoldoutFigures> holdout_figures_;
  std::optional<Predictor> predictor_;  ///< made when the first row is
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> last_step_;  ///< empty: not known yet
  std::vector<MetricsRow> metrics_;
  std::uint64_t measured_step_ = 0;  ///< of the last row, known or pending; 0: there is none
  double seconds_ = 0.0;
  PendingRows pending_;  ///< empty outside of advance()
};

}  // namespace cudp
