#pragma once
#include <cstdint>
#include <functional>
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

/// State from which a training resumes as if it had never stopped, together with its experiment and
/// key. The position of the random generator is the step, which addresses every random number.
struct TrainingState {
  std::uint64_t step = 0;  ///< number of steps done
  MethodState method;
  TrainingSize size;
  privacy::Ledger ledger;
  std::vector<PrivacyBudget::Taken> taken;    ///< charges without a number that were used
  std::vector<privacy::NoisyValue> released;  ///< values listed by the gate
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;                       ///< training time so far
  std::vector<float> feature_release;         ///< see Experiment
  std::optional<SharedKey> coins;             ///< see Experiment
  std::optional<PublicWeights> initial = {};  ///< see Experiment
  std::string first_parameters = {};  ///< digest of the trained parameters before the first step
};

/// Plans the figures of held-out rows; its share is 0 if none are held out. size_noise: noise of
/// the released number of training examples. Throws BudgetError.
HoldoutPlan holdout_plan_of(const Experiment& experiment, double size_noise);

/// Training in progress. It needs no folder, no terminal and no file; an observer stores or shows
/// its results. Everything that it releases is charged first and then passes its gate.
class Training {
 public:
  /// Starts a training: counts the examples, plans, makes the release that features need, and
  /// starts the method. `observer` and `release_observer` must outlive the training.
  /// release_observer: receives all releases; may be null. Throws InputError, also if it is a
  /// SecretObserver and the training is not seeded. Throws BudgetError if settings and size allow
  /// no training.
  static std::unique_ptr<Training> begin(Experiment experiment, SharedKey key,
                                         TrainingObserver& observer,
                                         ReleaseObserver* release_observer = nullptr);

  /// Resumes from `state` of the same experiment, whose data are as prepare() returned them.
  /// same_key: `key` is the one that the training began with; if not, the caller must call
  /// pay_again() before advance(). Throws BudgetError if the budget allows no more steps.
  static std::unique_ptr<Training> resume(Experiment experiment, SharedKey key,
                                          TrainingObserver& observer, TrainingState state,
                                          bool same_key,
                                          ReleaseObserver* release_observer = nullptr);

  /// Charges again for steps that will be repeated under a new key. Throws BudgetError if that is
  /// not possible.
  void pay_again();

  /// Trains to the end, or until the observer interrupts. Throws BudgetError if the budget does not
  /// allow a single step.
  void advance();

  bool is_finished() const { return last_step_ == step_; }

  const Experiment& experiment() const { return experiment_; }
  const RandomKey& key() const { return key_.key(); }
  const TrainingSize& size() const { return size_; }
  ReleaseObserver* release_observer() const { return gate_.release_observer(); }
  const Method& method() const { return *method_; }
  const privacy::Ledger& ledger() const { return budget_.ledger(); }
  const privacy::Filter* filter() const { return budget_.filter(); }
  std::uint64_t step() const { return step_; }  ///< number of steps done
  /// Returns the step at which it will stop: the method's number of steps, or what the budget
  /// allows.
  std::uint64_t last_step() const { return last_step_.value(); }
  const std::vector<MetricsRow>& metrics() const { return metrics_; }
  double seconds() const { return seconds_; }  ///< training time so far

  /// Returns the state for a checkpoint.
  TrainingState state() const;
  /// Checks that all ranks have the same model. Throws RanksError if not.
  void agree() const { (void)joined_state(); }
  /// Executes an order of rank 0. Called by the other ranks.
  void follow(Order order);

  /// Returns the certificate of a training that ends here.
  privacy::Certificate certificate() const;
  /// Returns the certificate of the plan: of what will have been spent if the training ends as
  /// planned. It states that the training is not finished.
  privacy::Certificate plan_certificate() const;
  /// Returns the model as it may be published.
  ReleasedModel model() const;
  /// Returns whether the trained parameters of that model are those before the first step, if the
  /// training began with weights of a file. It follows from what is released.
  bool is_unchanged() const;
  /// Return the plan for the noisy figures of held-out rows (its share is 0 if none are held out),
  /// and the released figures (empty until the training is finished).
  const HoldoutPlan& holdout_plan() const { return holdout_plan_; }
  const std::optional<HoldoutFigures>& holdout_figures() const { return holdout_figures_; }
  /// Evaluates the model on the test set; nullopt if there is none. Held-out rows count as a test
  /// set, even if there are none of them.
  std::optional<Evaluation> evaluate();

 private:
  class Loop;

  Training(Experiment experiment, SharedKey key, TrainingObserver& observer,
           ReleaseObserver* release_observer, privacy::Ledger ledger,
           std::vector<PrivacyBudget::Taken> taken, std::vector<privacy::NoisyValue> released);

  std::unique_ptr<Method> make_method() const;
  Ranks& ranks() const { return *experiment_.ranks; }
  /// Returns the method's state, joined over all ranks.
  MethodState joined_state() const;
  /// Returns the logits of this rank's test examples; on rank 0 those of all.
  std::vector<float> joined_logits();
  TrainingInputs inputs();
  void plan();
  /// Releases the figures of held-out rows that the plan pays for, once. Their noise comes from the
  /// run's key, so the same key gives the same figures again.
  void release_holdout();
  /// Adds a row of metrics for this step, unless it has one.
  void measure_once();
  void measure();
  /// Returns the row with `epsilon` raised to the guarantee for held-out rows, if there are any.
  MetricsRow with_holdout(MetricsRow row) const;
  /// Appends rows whose epsilon is known to the metrics, and reports them to the observer.
  void add(const std::vector<MetricsRow>& rows);
  /// Returns the model's predictions for the test set.
  Predictions answers();
  /// Returns a function that evaluates predictions for the test set. It owns what it needs: it may
  /// be called in another thread, while this one continues to train.
  std::function<Evaluation()> evaluation_of(Predictions predictions) const;

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
  std::optional<Predictor> predictor_;  ///< created when the first row is measured
  std::string first_parameters_;        ///< see TrainingState; empty if all weights were drawn
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> last_step_;  ///< nullopt until it is known
  std::vector<MetricsRow> metrics_;
  std::uint64_t measured_step_ = 0;  ///< step of the last row, known or pending; 0 if there is none
  double seconds_ = 0.0;
  /// Evaluation of the last row of this process, complete when the row is known. Null if that row
  /// has no test set.
  std::shared_ptr<Evaluation> evaluated_;
  PendingRows pending_;  ///< empty outside advance()
};

}  // namespace cudp
