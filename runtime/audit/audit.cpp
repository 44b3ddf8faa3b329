#include "runtime/audit/audit.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/audit/canaries.hpp"
#include "runtime/audit/scores.hpp"
#include "runtime/base/error.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/training/certify.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {
namespace {

/// The audit's own key: of coins and canaries, which the training must not know.
RandomKey audit_key(const TrainConfig& config) {
  constexpr std::uint64_t kOther = 0x61756469746b6579;
  return config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed) ^ kOther)
                     : make_key();
}

constexpr const char* kNotForRelease = "audit: canaries were among the training examples";

class Audit {
 public:
  Audit(const TrainConfig& config, AuditSettings settings, Reporter& reporter)
      : settings_(settings),
        reporter_(reporter),
        key_(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed)) : make_key()),
        own_key_(audit_key(config)),
        budget_(privacy::Ledger(), [](const privacy::Ledger&) {}),
        gate_(config.rng, key_.key(), budget_),
        e_(prepare(config, reporter)),
        member_(toss_coins(settings_.canaries, own_key_.key())) {
    if (!settings_.guesses) settings_.guesses = std::max<std::uint64_t>(2, settings_.canaries / 10);
    e_.data.test = {};
    e_.data.notes.clear();
    if (settings_.kind == CanaryKind::gradient)
      add_gradient_canaries();
    else
      add_example_canaries();
  }

  AuditResult run() {
    make_method();
    train();
    AuditResult r = attack();
    r.certificate = make_certificate(e_, size_, *method_, budget_.ledger(), gate_.listed(), step_);
    r.certificate.not_for_release.emplace_back(kNotForRelease);
    r.epsilon = r.certificate.promise.epsilon;
    r.delta = r.certificate.promise.delta;
    bound(r);
    return r;
  }

 private:
  std::size_t members() const {
    return static_cast<std::size_t>(std::ranges::count(member_, true));
  }

  void add_gradient_canaries() {
    if (settings_.canaries > e_.network.parameter_count)
      throw InputError(fmt::format(
          "--canaries: expected at most the model's {} parameters, one for each, found {}",
          e_.network.parameter_count, settings_.canaries));
    public_size_ = e_.data.train.size() + settings_.canaries;
    parameters_ = canary_parameters(settings_.canaries, e_.network);
    append_blanks(e_.data.train, members());
    e_.backend.make_engine = [this, real = e_.backend.make_engine](const Network& network,
                                                                   EngineSettings settings) {
      scores_.emplace(parameters_, static_cast<double>(settings.sampling_threshold) * 0x1p-32);
      auto tap = std::make_shared<AuditTap>();
      tap->canaries = members_of(parameters_, member_);
      tap->released = [this](const ReleasedSum& sum) { scores_->add(sum); };
      settings.audit = std::move(tap);
      return real(network, settings);
    };
  }

  void add_example_canaries() {
    const std::size_t n = e_.data.train.size();
    if (settings_.canaries > n / 2)
      throw InputError(
          fmt::format("--canaries: expected at most half of the training examples, found {}",
                      settings_.canaries));
    public_size_ = n;
    ExampleCanaries c = mislabel(e_.data.train, member_, own_key_.key());
    e_.data.train = std::move(c.train);
    e_.data.test = std::move(c.all);  // features are made of them as of test examples
  }

  void make_method() {
    size_ = {static_cast<double>(public_size_), 0.0};
    if (const double noise = size_noise(e_.data, e_.config); noise > 0.0) {
      budget_.plan(ledger_of_size(noise));
      size_ = training_size(e_.data, noise, gate_);
    }
    try {
      method_ = method_entry(e_.config.method)
                    .make({.config = e_.config,
                           .network = e_.network,
                           .size = size_,
                           .arithmetic = e_.backend.arithmetic(e_.network),
                           .before = releases_before(e_.config, size_)});
      budget_.plan(first_ledger(e_.config, size_, *method_));
    } catch (const std::domain_error& refused) {
      throw BudgetError(refused.what());
    } catch (const std::invalid_argument& refused) {
      throw BudgetError(refused.what());
    }
  }

  void train() {
    release_features(e_, size_, gate_);
    method_->start(
        {.train = e_.data.train, .backend = e_.backend, .key = key_.key(), .gate = gate_}, budget_);
    reporter_.info(fmt::format("{} canaries, {} of them among the training examples",
                               settings_.canaries, members()));
    reporter_.info(method_->describe());
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t last = method_->last_step(budget_, 0);
    while (step_ < last) {
      const std::uint64_t until = method_->authorise(
          budget_, step_, std::min(last, step_ + std::min<std::uint64_t>(32, last - step_)));
      if (until == step_) break;
      const std::uint64_t done = method_->train(step_, until);
      if (done < until) last = done;
      step_ = done;
      show_progress(start, last);
    }
    if (step_ == 0) throw BudgetError("the budget does not allow a single step");
    seconds_ = since(start);
  }

  static double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void show_progress(std::chrono::steady_clock::time_point start, std::uint64_t last) {
    const auto per_epoch = static_cast<double>(method_->steps_per_epoch());
    const double steps =
        last == Method::kOpenEnded ? method_->expected_steps(step_) : static_cast<double>(last);
    const double rate = static_cast<double>(step_) / since(start);
    Progress p;
    p.epoch = static_cast<double>(step_) / per_epoch;
    p.epochs = steps / per_epoch;
    p.step = step_;
    p.steps = static_cast<std::uint64_t>(steps);
    p.examples_per_second = rate * method_->examples_per_step();
    p.seconds_left = (steps - static_cast<double>(step_)) / rate;
    reporter_.progress(p);
  }

  AuditResult attack() {
    AuditResult r;
    r.settings = settings_;
    r.members = members();
    r.steps = step_;
    const std::vector<double> scores =
        settings_.kind == CanaryKind::gradient ? scores_->scores() : canary_scores();
    for (std::size_t i = 0; i < scores.size(); ++i) r.scores.emplace_back(scores[i], member_[i]);
    r.guesses = guess(r.scores, *settings_.guesses);
    r.seconds = seconds_;
    return r;
  }

  /// The model's losses on the canaries, with a minus sign.
  std::vector<double> canary_scores() {
    EngineSettings settings;
    settings.threads = static_cast<int>(e_.config.threads);
    settings.precision = e_.config.precision;
    std::vector<double> scores = losses(
        Predictor(e_.backend, e_.network, settings).predict(method_->parameters(), e_.data.test));
    for (double& score : scores) score = -score;
    return scores;
  }

  void bound(AuditResult& r) const {
    const double error = 1.0 - settings_.confidence;
    r.any = privacy::epsilon_lower(r.guesses, r.delta, error);
    r.gaussian = privacy::gaussian_epsilon_lower(r.guesses, r.delta, error);
    if (budget_.filter() != nullptr) return;  // chosen on the way: there is no one curve
    try {
      r.own = privacy::epsilon_lower(r.guesses, budget_.ledger().releases(), r.delta, error);
    } catch (const std::domain_error&) {
      r.own.reset();  // releases of another kind
    }
  }

  AuditSettings settings_;
  Reporter& reporter_;
  SecretKey key_;
  SecretKey own_key_;
  PrivacyBudget budget_;
  Gate gate_;
  Experiment e_;
  std::vector<bool> member_;
  std::vector<std::uint32_t> parameters_;
  std::optional<GradientScores> scores_;
  std::size_t public_size_ = 0;
  TrainingSize size_;
  std::unique_ptr<Method> method_;
  std::uint64_t step_ = 0;
  double seconds_ = 0.0;
};

void check(const TrainConfig& config, const AuditSettings& settings) {
  if (!method_entry(config.method).gives_privacy)
    throw InputError("--method: expected one with privacy for an audit, found " + config.method);
  if (settings.kind == CanaryKind::gradient && method_entry(config.method).linear_model)
    throw InputError("--canary: expected example with --method " + config.method +
                     ", which does not release sums of clipped gradients, found gradient");
  if (settings.canaries < 10)
    throw InputError(fmt::format("--canaries: expected at least 10, found {}", settings.canaries));
  if (settings.guesses && (*settings.guesses < 2 || *settings.guesses > settings.canaries))
    throw InputError(fmt::format("--guesses: expected 2 to the {} canaries, found {}",
                                 settings.canaries, *settings.guesses));
  if (!(settings.confidence > 0.0 && settings.confidence < 1.0))
    throw InputError(
        fmt::format("--confidence: expected a number in (0, 1), found {}", settings.confidence));
}

}  // namespace

bool AuditResult::refutes() const { return std::max({any, gaussian, own.value_or(0.0)}) > epsilon; }

AuditResult audit(const TrainConfig& config, const AuditSettings& settings, Reporter& reporter) {
  check(config, settings);
  return Audit(config, settings, reporter).run();
}

}  // namespace cudp
