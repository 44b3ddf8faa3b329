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
#include "runtime/training/pending_rows.hpp"
#include "runtime/training/prepare.hpp"
#include "runtime/training/rank_command.hpp"

namespace cudp {

/// State of a training that a checkpoint stores. From this state, the same Experiment and the same
/// random key, a training continues as if it had never stopped. There is no state of a random
/// generator, because random numbers are functions of key and step.
struct TrainingState {
  std::uint64_t step = 0;  ///< number of steps done
  MethodState method;
  TrainingSize size;
  privacy::Ledger ledger;
  std::vector<PrivacyBudget::UsedCharge>
      used_charges;  ///< releases without an index that were made so far (PrivacyBudget)
  std::vector<privacy::NoisyValue> released;  ///< noisy values released so far
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;                ///< training time so far
  std::vector<float> feature_release;  ///< released noisy statistics for features (Experiment)
  /// Key that decided which rows are held out; nullopt if none are.
  std::optional<SharedKey> split_key;
  /// Pre-trained weights (--init); nullopt if there are none.
  std::optional<PublicWeights> initial = {};
  std::string first_parameters = {};  ///< hash of the trained parameters before the first step
};

/// Returns the plan (budget and noise) for releasing noisy test results, such as a confusion
/// matrix, of rows held out of the training data. HoldoutPlan::share is 0 if no rows are held out.
/// size_noise: standard deviation of the noise on the number of training examples; 0 if that is
/// public. Throws BudgetError if the budget of --holdout does not suffice.
HoldoutPlan holdout_plan_of(const Experiment& experiment, double size_noise);
/// Adds statements about rows held out of the training data to a certificate, and returns it. plan:
/// budget and noise of the test metrics of these rows, from which the statements follow.
privacy::Certificate with_holdout(privacy::Certificate certificate, const HoldoutPlan& plan);

/// A training in progress. It needs no folder, terminal or file; an observer stores or shows its
/// results. The privacy cost of every value that it releases is charged to the budget before the
/// noise of that value is drawn.
class Training {
 public:
  /// Starts a training: releases the number of examples with noise if it is private, makes the
  /// privacy plan, releases the noisy statistics that features need, and initialises the training
  /// method. `observer` and `release_observer` must outlive the training. release_observer:
  /// receives all released values; may be null. Throws InputError if settings are not valid, or if
  /// `release_observer` is one that receives secrets (SecretObserver) although the training's
  /// randomness does not come from a seed. Throws BudgetError if the budget does not suffice for
  /// these settings and this number of examples.
  static std::unique_ptr<Training> begin(Experiment experiment, SharedKey key,
                                         TrainingObserver& observer,
                                         ReleaseObserver* release_observer = nullptr);

  /// Resumes a training from `state`, a checkpoint of the same experiment. The data of `experiment`
  /// must be as prepare() returned them. same_key: whether `key` is the key with which `state` was
  /// made; if not, the caller must call charge_again() before advance(), because steps will be
  /// repeated with new noise. Throws BudgetError if the budget allows no more steps.
  static std::unique_ptr<Training> resume(Experiment experiment, SharedKey key,
                                          TrainingObserver& observer, TrainingState state,
                                          bool same_key,
                                          ReleaseObserver* release_observer = nullptr);

  /// Charges the privacy cost of steps again, before they are repeated with new noise. Called if
  /// the run's random key was lost, so that the old noise cannot be drawn again. Throws BudgetError
  /// if the budget does not suffice.
  void charge_again();

  /// Trains until the last step, or until the observer's function interrupts() returns true. Throws
  /// BudgetError if the budget does not allow a single step.
  void advance();

  /// Reads all rows of the training set from their file, and passes them to `use`, if the device
  /// can copy the rows of the next steps in the same pass (Engine::read_all_rows). Returns whether
  /// all rows were passed. Releases nothing. Call it before advance().
  bool read_all_rows(const RowUse& use);

  bool is_finished() const { return last_step_ == step_; }

  const Experiment& experiment() const { return experiment_; }
  const RandomKey& key() const { return key_.key(); }
  const TrainingSize& size() const { return size_; }
  ReleaseObserver* release_observer() const { return gate_.release_observer(); }
  const Method& method() const { return *method_; }
  const privacy::Ledger& ledger() const { return budget_.ledger(); }
  const privacy::Filter* filter() const { return budget_.filter(); }
  std::uint64_t step() const { return step_; }  ///< number of steps done
  /// Returns the step at which the training will stop: the method's number of steps, or fewer if
  /// the budget allows only these.
  std::uint64_t last_step() const { return last_step_.value(); }
  const std::vector<MetricsRow>& metrics() const { return metrics_; }
  double seconds() const { return seconds_; }  ///< training time so far [s]

  /// Returns the state of the training that a checkpoint must store.
  TrainingState state() const;
  /// Checks that all ranks (processes) have the same parameters. Throws RanksError if they differ.
  void agree() const { (void)joined_state(); }
  /// Executes a command that rank 0 sent. Called on the other ranks (processes).
  void follow(RankCommand command);

  /// Returns the certificate that the training has if it ends at the current step. Its epsilon
  /// covers everything that was charged so far.
  privacy::Certificate certificate() const;
  /// Returns a certificate whose epsilon covers everything that the training will have spent if it
  /// ends as planned. The certificate states that the training is not finished.
  privacy::Certificate plan_certificate() const;
  /// Returns the trained model in the form in which it is published.
  ReleasedModel model() const;
  /// Returns whether the trained parameters are still equal, to the bit, to the pre-trained weights
  /// from which the training started. False if it started from random weights. The answer depends
  /// on the start weights and the released model only.
  bool is_unchanged() const;
  /// Returns the plan (budget and noise) for releasing noisy test results of rows held out of the
  /// training data. HoldoutPlan::share is 0 if no rows are held out.
  const HoldoutPlan& holdout_plan() const { return holdout_plan_; }
  /// Returns the noisy test results of rows held out of the training data; nullopt until they are
  /// released, at the end of the training.
  const std::optional<HoldoutFigures>& holdout_figures() const { return holdout_figures_; }
  /// Evaluates the model on the test set; nullopt if there is no test set. Rows held out of the
  /// training data are a test set, even if their number is 0.
  std::optional<Evaluation> evaluate();

 private:
  class Loop;

  Training(Experiment experiment, SharedKey key, TrainingObserver& observer,
           ReleaseObserver* release_observer, privacy::Ledger ledger,
           std::vector<PrivacyBudget::UsedCharge> used_charges,
           std::vector<privacy::NoisyValue> released);

  std::unique_ptr<Method> make_method() const;
  Ranks& ranks() const { return *experiment_.ranks; }
  /// Returns the state of the training method, combined from all ranks (processes).
  MethodState joined_state() const;
  /// Computes the model's outputs (logits) for the test set, whose examples are distributed over
  /// the ranks (processes). Returns those of all test examples on rank 0, and those of the rank's
  /// own test examples on other ranks.
  std::vector<float> joined_logits();
  TrainingInputs inputs();
  void plan();
  /// Releases noisy test results (such as a confusion matrix) of rows held out of the training
  /// data. Call it once. The noise is a function of the run's random key, so repeating the release
  /// with the same key gives the same numbers.
  void release_holdout();
  /// Adds a line of metrics for the current step, unless there is one for this step already.
  void measure_once();
  void measure();
  /// Returns `row` with an epsilon that also covers the released test metrics of held-out rows: the
  /// larger of row.epsilon and the budget of these metrics. Returns `row` unchanged if no rows are
  /// held out.
  MetricsRow with_holdout(MetricsRow row) const;
  /// Appends lines of metrics, whose values must all be computed, to the training's metrics, and
  /// passes them to the observer.
  void add(const std::vector<MetricsRow>& rows);
  /// Computes the current model's outputs (logits) for the test set, and returns them with the
  /// labels or targets of the test examples.
  Predictions answers();
  /// Returns a function that computes all metrics from predictions for the test set. It has its own
  /// copy of the predictions, so another thread may call it while the training continues.
  std::function<Evaluation()> evaluation_of(Predictions predictions, EvaluationParts parts) const;

  Experiment experiment_;
  SharedKey key_;
  TrainingObserver& observer_;
  PrivacyBudget budget_;
  Gate gate_;
  TrainingSize size_;
  std::unique_ptr<Method> method_;

  HoldoutPlan holdout_plan_;
  std::optional<HoldoutFigures> holdout_figures_;
  std::optional<Predictor> predictor_;  ///< created at the first line of metrics
  /// Hash of the trained parameters before the first step, if the training started from pre-trained
  /// weights; "" if all weights were drawn at random.
  std::string first_parameters_;
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> last_step_;  ///< nullopt until it is known
  std::vector<MetricsRow> metrics_;
  std::uint64_t measured_step_ = 0;  ///< step of the last line of metrics, complete or not; 0: none
  double seconds_ = 0.0;
  /// Evaluation on the test set that belongs to the last line of metrics. Another thread writes it,
  /// so it is valid only once that line is complete. Null if there is no test set, or if that line
  /// is not the last one of the training.
  std::shared_ptr<Evaluation> evaluated_;
  PendingRows pending_;  ///< lines of metrics that are being computed; empty outside advance()
};

}  // namespace cudp
