#include "runtime/training/training.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "models/freeze.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/before_count.hpp"
#include "runtime/training/certify.hpp"

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

/// Durations that divide a training [seconds]. kChunkSeconds: one call of Method::train, short
/// enough for the progress bar and for signals. kCheckpointSeconds: time between two checkpoints,
/// the most training time that a crash can lose.
constexpr double kChunkSeconds = 0.25;
constexpr double kCheckpointSeconds = 20.0;

}  // namespace

Training::Training(Experiment experiment, SharedKey key, TrainingObserver& observer,
                   ReleaseObserver* release_observer, privacy::Ledger ledger,
                   std::vector<PrivacyBudget::UsedCharge> used_charges,
                   std::vector<privacy::NoisyValue> released)
    : experiment_(std::move(experiment)),
      key_(std::move(key)),
      observer_(observer),
      budget_(
          std::move(ledger), [&observer](const privacy::Ledger& l) { observer.charged(l); },
          std::move(used_charges)),
      gate_(experiment_.config.rng, key_, budget_, std::move(released), release_observer) {
  check_release_observer(release_observer, experiment_.config);
  if (experiment_.memo == nullptr) experiment_.memo = std::make_shared<privacy::AccountantMemo>();
}

std::unique_ptr<Method> Training::make_method() const {
  const Experiment& e = experiment_;
  MethodContext context =
      method_context(e.config, e.network, size_, e.backend.arithmetic(e.network), budget_.ledger());
  context.memo = e.memo;
  return method_entry(e.config.method).make(context);
}

TrainingInputs Training::inputs() {
  return {.train = experiment_.data.train,
          .backend = experiment_.backend,
          .key = key_,
          .gate = gate_,
          .ranks = experiment_.ranks,
          .initial = experiment_.initial ? std::span<const float>(experiment_.initial->initial)
                                         : std::span<const float>()};
}

MethodState Training::joined_state() const {
  announce(ranks(), {.kind = RankCommand::Kind::state});
  return joined(method_->state(), ranks());
}

void Training::follow(RankCommand command) {
  switch (command.kind) {
    case RankCommand::Kind::charge_again:
      return charge_again();
    case RankCommand::Kind::authorise:
      (void)method_->authorise(budget_, command.step, command.until);
      return;
    case RankCommand::Kind::train:
      step_ = method_->train(command.step, command.until);
      return;
    case RankCommand::Kind::evaluate:
      (void)joined_logits();
      return;
    case RankCommand::Kind::state:
      (void)joined(method_->state(), ranks());
      return;
    default:
      throw std::logic_error("a command that no training follows");
  }
}

void Training::plan() {
  try {
    method_ = make_method();
    budget_.plan(first_ledger(experiment_.config, size_, *method_, budget_.ledger()));
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  } catch (const std::invalid_argument& e) {
    throw BudgetError(e.what());
  }
}

HoldoutPlan holdout_plan_of(const Experiment& e, double size_noise) {
  const TrainConfig& c = e.config;
  if (!c.holdout) return {};
  HoldoutPlan plan{.share = *c.holdout, .unit_rows = e.data.unit_rows};
  if (c.holdout_epsilon)
    plan = cudp::plan_holdout(*c.holdout, *c.holdout_epsilon, *c.holdout_delta,
                              e.data.train.has_targets(), size_noise, e.data.unit_rows);
  plan.threshold = c.of<ReportOptions>().holdout_threshold;
  return plan;
}

namespace {

/// Privacy budget for the test metrics of held-out rows. It allows the planned number of releases
/// with the planned noise, and nothing else.
class HoldoutBudget final : public ReleaseAuthority {
 public:
  explicit HoldoutBudget(const HoldoutPlan& plan) : plan_(plan) {}
  bool admit(const Charge& charge) override {
    return charge.mechanism == privacy::Mechanism(privacy::Gaussian{plan_.sigma}) &&
           made_++ < plan_.releases;
  }

 private:
  const HoldoutPlan& plan_;
  std::uint64_t made_ = 0;
};

}  // namespace

void Training::release_holdout() {
  if (!is_finished() || !holdout_plan_.releases_figures() || holdout_figures_) return;
  observer_.holdout_due(*this);
  HoldoutBudget budget(holdout_plan_);
  Gate gate(experiment_.config.rng, key_, budget, {}, gate_.release_observer());
  holdout_figures_ =
      cudp::release_holdout(holdout_plan_, answers(), experiment_.data.train.classes,
                            experiment_.inputs.target().value_or(TargetBounds{}), gate);
}

std::unique_ptr<Training> Training::begin(Experiment experiment, SharedKey key,
                                          TrainingObserver& observer,
                                          ReleaseObserver* release_observer) {
  observer.enters("accountant");
  const double noise =
      size_noise(experiment.data, experiment.config,
                 table_chooses_batch(experiment.config, experiment.data.train, experiment.network));
  const privacy::Ledger counted =
      ledger_of_size(noise, count_split(experiment.config, experiment.data));
  if (noise > 0.0) check_before_count(experiment, noise, counted);
  std::unique_ptr<Training> t(
      new Training(std::move(experiment), std::move(key), observer, release_observer, {}, {}, {}));
  Experiment& e = t->experiment_;
  t->holdout_plan_ = holdout_plan_of(
      t->experiment_, noise);  // depends on public settings only, so a refusal costs nothing
  if (noise > 0.0) t->budget_.plan(counted);
  observer.opens(*t);
  const std::optional<CountInUse>& count = e.config.of<KeysInUse>().count;
  if (count) t->gate_.use_key(Stream::dataset_size, count->key);
  t->size_ = training_size(e.data, noise, t->gate_);
  if (count && count->value && t->size_.value != *count->value)
    throw std::logic_error("the number of examples is not the one that was released");
  if (noise == 0.0 && e.public_size) t->size_.value = static_cast<double>(*e.public_size);
  choose_for_table(e.config, t->size_, e.data.train, e.network);
  try {
    t->plan();
  } catch (const Error& reason) {
    if (!t->size_.is_public()) observer.refused(*t, reason);
    throw;
  }
  t->last_step_ = t->method_->steps();
  observer.planned(*t);
  observer.enters("engine");
  release_features(e, t->size_, t->gate_);
  t->method_->start(t->inputs(), t->budget_);
  if (e.initial) t->first_parameters_ = digest_of(t->method_->parameters());
  return t;
}

std::unique_ptr<Training> Training::resume(Experiment experiment, SharedKey key,
                                           TrainingObserver& observer, TrainingState state,
                                           bool same_key, ReleaseObserver* release_observer) {
  std::unique_ptr<Training> t(new Training(
      std::move(experiment), std::move(key), observer, release_observer, std::move(state.ledger),
      std::move(state.used_charges), std::move(state.released)));
  t->size_ = state.size;
  t->step_ = state.step;
  t->metrics_ = std::move(state.metrics);
  if (!t->metrics_.empty()) t->measured_step_ = t->metrics_.back().step;
  t->seconds_ = state.seconds;
  t->first_parameters_ = std::move(state.first_parameters);
  show_features(t->experiment_, std::move(state.feature_release));
  t->holdout_plan_ = holdout_plan_of(t->experiment_, t->size_.noise);
  // completes rows that versions before checkpoint format 2 wrote
  for (MetricsRow& row : t->metrics_) row = t->with_holdout(row);
  observer.enters("accountant");
  t->method_ = t->make_method();
  observer.enters("engine");
  // The rows may have changed under another key, so unreleased state of the earlier rows must not
  // be used.
  MethodState kept = same_key ? std::move(state.method) : released_part(std::move(state.method));
  t->method_->restore(t->inputs(), part_of(std::move(kept), t->experiment_.data.train));
  if (same_key) t->last_step_ = t->method_->last_step(t->budget_, t->step_);
  return t;
}

void Training::charge_again() {
  if (ranks().leads()) announce(ranks(), {.kind = RankCommand::Kind::charge_again});
  method_->fresh_key(budget_, step_);
  last_step_ = method_->last_step(budget_, step_);
}

TrainingState Training::state() const {
  return {.step = step_,
          .method = joined_state(),
          .size = size_,
          .ledger = budget_.ledger(),
          .used_charges = budget_.used_charges(),
          .released = gate_.listed(),
          .metrics = metrics_,
          .seconds = seconds_,
          .feature_release = experiment_.feature_release,
          .split_key = experiment_.split_key,
          .initial = experiment_.initial,
          .first_parameters = first_parameters_};
}

privacy::Certificate with_holdout(privacy::Certificate c, const HoldoutPlan& plan) {
  if (plan.share > 0.0)
    c.hold_out({.share = plan.share,
                .epsilon = plan.epsilon,
                .delta = plan.delta,
                .sigma = plan.sigma,
                .releases = plan.releases,
                .threshold = plan.threshold});
  return c;
}

privacy::Certificate Training::certificate() const {
  return cudp::with_holdout(
      make_certificate(experiment_, size_, *method_, budget_.ledger(), gate_.listed(), step_),
      holdout_plan_);
}

privacy::Certificate Training::plan_certificate() const {
  return cudp::with_holdout(make_plan_certificate(experiment_, size_, *method_, budget_.ledger(),
                                                  gate_.listed(), step_, last_step()),
                            holdout_plan_);
}

ReleasedModel Training::model() const {
  const Experiment& e = experiment_;
  return {.text = e.model_text,
          .activation = e.config.activation,
          .network = unfrozen(e.network),
          .parameters = whole_parameters(e.network, method_->parameters()),
          .dataset = e.data.name,
          .features = feature_settings(e.config),
          .feature_release = e.feature_release,
          .coder = e.data.text,
          .inputs = e.inputs,
          .initial_weights = e.initial ? std::optional(e.initial->input) : std::nullopt};
}

bool Training::read_all_rows(const RowUse& use) { return method_->read_all_rows(step_, use); }

bool Training::is_unchanged() const {
  return experiment_.initial && digest_of(method_->parameters()) == first_parameters_;
}

void Training::measure_once() {
  if (measured_step_ != step_) measure();
}

void Training::measure() {
  observer_.enters("test rows");
  const Experiment& e = experiment_;
  // Before the last step a faster, slightly looser bound on epsilon suffices. The last line's
  // epsilon is the certificate's, and is computed with the tight bound.
  const bool last = step_ == last_step_;
  pending_.start(method_->spent(budget_.ledger(), step_, last));
  MetricsRow row{
      .epoch = static_cast<double>(step_) / static_cast<double>(method_->steps_per_epoch()),
      .step = step_,
      .learning_rate = method_->learning_rate(step_)};
  evaluated_ = nullptr;
  if (!e.has_test()) {
    pending_.add(row);
  } else if (last) {
    evaluated_ = std::make_shared<Evaluation>();
    pending_.add(row,
                 [this_step = evaluated_, work = evaluation_of(answers(), EvaluationParts::all)] {
                   *this_step = work();
                   return metrics_of(*this_step);
                 });
  } else {
    pending_.add(row, [work = evaluation_of(answers(), EvaluationParts::metrics)] {
      return metrics_of(work());
    });
  }
  measured_step_ = step_;
  observer_.enters("training");
}

MetricsRow Training::with_holdout(MetricsRow row) const {
  if (holdout_plan_.share == 0.0 || row.training_epsilon) return row;
  row.training_epsilon = row.epsilon;
  row.epsilon = std::fmax(row.epsilon, holdout_plan_.epsilon);
  return row;
}

void Training::add(const std::vector<MetricsRow>& rows) {
  for (const MetricsRow& row : rows) {
    metrics_.push_back(with_holdout(row));
    observer_.measured(metrics_);
  }
}

std::vector<float> Training::joined_logits() {
  const Experiment& e = experiment_;
  if (!predictor_) predictor_.emplace(e.backend, e.network, forward_settings(e.config));
  predictor_->set_parameters(method_->parameters());
  std::vector<float> mine = predictor_->logits(e.data.test);
  if (ranks().alone()) return mine;
  std::vector<float> all;
  for (const std::string& part :
       ranks().gather("answers to the test set", std::as_bytes(std::span(mine)))) {
    const std::size_t at = all.size();
    all.resize(at + part.size() / sizeof(float));
    std::memcpy(all.data() + at, part.data(), part.size());
  }
  return all;
}

Predictions Training::answers() {
  const Experiment& e = experiment_;
  announce(ranks(), {.kind = RankCommand::Kind::evaluate});
  return {.loss = e.network.spec.loss,
          .outputs = e.network.outputs,
          .logits = joined_logits(),
          .labels = ranks().alone() ? e.data.test.labels : e.test_labels,
          .targets = ranks().alone() ? copy_of(e.data.test.targets) : e.test_targets,
          .huber = e.network.spec.huber};
}

std::function<Evaluation()> Training::evaluation_of(Predictions predictions,
                                                    EvaluationParts parts) const {
  return [parts, predictions = std::move(predictions),
          bounds = experiment_.inputs.target().value_or(TargetBounds{}),
          threshold = experiment_.config.of<ReportOptions>().holdout_threshold] {
    return cudp::evaluate(predictions, bounds, threshold, parts);
  };
}

std::optional<Evaluation> Training::evaluate() {
  if (!experiment_.has_test()) return std::nullopt;
  if (evaluated_ != nullptr && measured_step_ == step_ && pending_.empty()) return *evaluated_;
  return evaluation_of(answers(), EvaluationParts::all)();
}

/// Implementation of one call of Training::advance(): the loop over steps, with the speed measured
/// so far.
class Training::Loop {
 public:
  explicit Loop(Training& training)
      : t_(training),
        method_(*training.method_),
        config_(training.experiment_.config),
        observer_(training.observer_),
        steps_per_epoch_(method_.steps_per_epoch()) {}

  void run() {
    observer_.enters("training");
    while (!t_.is_finished()) {
      const std::uint64_t until = timed([&] { return authorise(t_.step_, next_checkpoint()); });
      if (until == t_.step_) stop_at_budget();
      // The checkpoint stores the charges before any noise is drawn for them, so that an older
      // ledger can be detected on a resume.
      if (!t_.is_finished()) checkpoint();
      while (t_.step_ < until && !t_.is_finished() && !observer_.interrupts()) take_steps(until);
      if (!t_.is_finished() && observer_.interrupts()) return checkpoint();
    }
    if (t_.step_ == 0) throw BudgetError("the budget does not allow a single step");
    t_.measure_once();
    t_.add(t_.pending_.all());
  }

 private:
  /// Stores a checkpoint, after waiting until all lines of metrics up to this step are complete.
  void checkpoint() {
    observer_.enters("checkpoints");
    t_.add(t_.pending_.all());
    observer_.checkpoint_due(t_);
    observer_.enters("training");
  }

  /// Returns the result of `body`, and adds the duration of the call to the training time.
  template <class Body>
  std::uint64_t timed(const Body& body) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t result = body();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    t_.seconds_ += seconds;
    seconds_ += seconds;
    return result;
  }

  std::uint64_t authorise(std::uint64_t step, std::uint64_t until) {
    announce(t_.ranks(), {RankCommand::Kind::authorise, step, until});
    return method_.authorise(t_.budget_, step, until);
  }
  std::uint64_t train(std::uint64_t step, std::uint64_t until) {
    announce(t_.ranks(), {RankCommand::Kind::train, step, until});
    return method_.train(step, until);
  }

  bool is_open_ended() const { return method_.steps() == Method::kOpenEnded; }

  double steps_per_second() const {
    return seconds_ > 0.0 ? static_cast<double>(steps_taken_) / seconds_ : 0.0;
  }

  /// Returns the number of steps that take about `seconds` at the speed measured so far, at least
  /// one; returns `first` before the speed is known.
  std::uint64_t steps_in(double seconds, std::uint64_t first) const {
    if (steps_taken_ == 0) return first;
    return static_cast<std::uint64_t>(std::clamp(seconds * steps_per_second(), 1.0, 1e9));
  }

  std::uint64_t next_checkpoint() const {
    const auto every = static_cast<std::uint64_t>(config_.checkpoint_every);
    const std::uint64_t steps =
        every > 0 ? every - t_.step_ % every
                  : steps_in(kCheckpointSeconds, std::min<std::uint64_t>(steps_per_epoch_, 32));
    return std::min(t_.step_ + steps, t_.last_step());
  }

  void take_steps(std::uint64_t until) {
    const std::uint64_t epoch_end = (t_.step_ / steps_per_epoch_ + 1) * steps_per_epoch_;
    const std::uint64_t last = std::min({until, epoch_end, t_.step_ + steps_in(kChunkSeconds, 1)});
    const std::uint64_t done = timed([&] { return train(t_.step_, last); });
    steps_taken_ += done - t_.step_;
    t_.step_ = done;
    if (done < last) return stop_at_budget();
    if (last == epoch_end) end_epoch(last / steps_per_epoch_);
    if (t_.is_finished()) t_.measure_once();
    t_.add(t_.is_finished() ? t_.pending_.all() : t_.pending_.known());
    show_progress();
  }

  /// Ends the training at the current step, because the budget is spent.
  void stop_at_budget() {
    if (!is_open_ended() && t_.step_ > 0)
      observer_.warned(
          fmt::format("the budget is spent at step {} of {}", t_.step_, t_.last_step()));
    t_.last_step_ = t_.step_;
  }

  void end_epoch(std::uint64_t epoch) {
    // These are statistics of private data; the certificate states that they were shown.
    if (config_.unsafe_diagnostics) observer_.diagnosed(epoch, t_.step_, method_.diagnostics());
    const auto every = static_cast<std::uint64_t>(config_.eval_every);
    if (every > 0 && epoch % every == 0) t_.measure();
  }

  void show_progress() {
    const auto steps_per_epoch = static_cast<double>(steps_per_epoch_);
    const auto step = static_cast<double>(t_.step_);
    const double rate = steps_per_second();
    const double steps =
        is_open_ended() ? method_.expected_steps(t_.step_) : static_cast<double>(t_.last_step());
    Progress p;
    p.epoch = step / steps_per_epoch;
    p.epochs = steps / steps_per_epoch;
    p.step = t_.step_;
    p.steps = static_cast<std::uint64_t>(steps);
    p.examples_per_second = rate * method_.examples_per_step();
    p.seconds_left = rate > 0.0 ? (steps - step) / rate : 0.0;
    if (!t_.metrics_.empty()) {
      const MetricsRow& row = t_.metrics_.back();
      if (std::isfinite(row.epsilon)) p.epsilon = row.epsilon;
      if (t_.experiment_.data.test_is_public) p.test_accuracy = row.test.accuracy();
    }
    observer_.progressed(p);
  }

  Training& t_;
  Method& method_;
  const TrainConfig& config_;
  TrainingObserver& observer_;
  std::uint64_t steps_per_epoch_;
  double seconds_ = 0.0;  ///< training time of this call of advance() [s]
  std::uint64_t steps_taken_ = 0;
};

void Training::advance() {
  ensure(last_step_.has_value(), "a key of its own, and nothing paid again");
  Loop(*this).run();
  if (is_finished() && !ranks().alone()) agree();
  release_holdout();
}

}  // namespace cudp
