#include "runtime/audit/audit.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/audit/canaries.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/option.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/training.hpp"

namespace cudp {
namespace {

/// Returns the random key of the audit's own choices: which canaries are members (included in the
/// training), and from which examples they are made. If config.seed is set, the key is made from
/// the seed XOR a constant, so that it differs from the training's key. Otherwise it is drawn at
/// random.
RandomKey audit_key(const TrainConfig& config) {
  constexpr std::uint64_t kOther = 0x61756469746b6579;
  return config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed) ^ kOther)
                     : make_key();
}

/// Default number of canaries. If the model has fewer parameters (gradient canaries), or half of
/// the examples are fewer (example canaries), the default is that smaller number.
constexpr std::uint64_t kCanaries = 1000;
/// Minimum number of canaries: fewer guesses give no useful bound.
constexpr std::uint64_t kMinCanaries = 10;

constexpr const char* kNotForRelease = "audit: canaries were among the training examples";

/// Shows the progress of the training, and sets up the canaries' scores once the privacy plan is
/// known.
class ProgressReporter final : public TrainingObserver {
 public:
  ProgressReporter(Reporter& reporter, Canaries& canaries)
      : reporter_(reporter), canaries_(canaries) {}

  void planned(const Training& training) override {
    // The rate is the expected batch size divided by the number of examples. With importance
    // sampling this is the rate of the worst case, in which all gradients have the clipping norm.
    if (const auto* method = dynamic_cast<const EngineMethod*>(&training.method()))
      canaries_.scores.emplace(canaries_.parameters, method->plan().sampling_rate(),
                               method->plan().group);
    reporter_.info(fmt::format("{} canaries, {} of them among the training examples",
                               canaries_.member.size(), canaries_.members()));
    const Experiment& e = training.experiment();
    if (const std::string chosen =
            table_defaults_line(e.config, training.size(), e.data.train, e.network);
        !chosen.empty())
      reporter_.info(chosen);
    reporter_.info(training.method().describe());
  }
  void progressed(const Progress& progress) override { reporter_.progress(progress); }

 private:
  Reporter& reporter_;
  Canaries& canaries_;
};

/// Returns the number of canaries: the requested number or the default. Throws InputError if the
/// requested number of canaries or of guesses is out of range, or if the model or the training set
/// is too small. Error messages state the number of training examples only if it is public.
std::uint64_t number_of_canaries(const AuditSettings& settings, const Experiment& e) {
  if (e.data.train.size() == 0)
    throw InputError("--dataset: expected at least one training example for an audit, found none");
  const bool by_gradient = settings.kind == CanaryKind::gradient;
  const std::uint64_t max = by_gradient ? e.network.parameter_count : e.data.train.size() / 2;
  const bool tells = by_gradient || e.data.size_is_public;
  const std::string what =
      by_gradient ? fmt::format("the model's {} parameters, one for each", max)
                  : "half of the training examples" + (tells ? fmt::format(", {}", max) : "");
  if (settings.canaries && *settings.canaries > max)
    throw InputError(
        fmt::format("--canaries: expected at most {}, found {}", what, *settings.canaries));
  if (max < kMinCanaries)
    throw InputError(
        by_gradient
            ? fmt::format("--canary: expected a model with at least {} parameters, one for each "
                          "canary, found {}. Use --canary example.",
                          kMinCanaries, max)
            : fmt::format("--canary: expected at least {} training examples, half of which may be "
                          "canaries, found {}",
                          2 * kMinCanaries, tells ? std::to_string(e.data.train.size()) : "fewer"));
  const std::uint64_t canaries = settings.canaries.value_or(std::min(kCanaries, max));
  if (settings.guesses && (*settings.guesses < 2 || *settings.guesses > canaries))
    throw InputError(fmt::format(
        "--guesses: expected 2 to the {}, found {}",
        tells || settings.canaries ? std::to_string(canaries) + " canaries" : "number of canaries",
        *settings.guesses));
  return canaries;
}

/// Returns the score of each example canary: the negated loss of the trained model on it.
std::vector<double> loss_scores(const Training& t) {
  const Experiment& e = t.experiment();
  Predictor predictor(e.backend, e.network, forward_settings(e.config));
  std::vector<double> scores = losses(predictor.predict(t.method().parameters(), e.data.test));
  for (double& score : scores) score = -score;
  return scores;
}

void bound(AuditResult& r, const Training& t) {
  const double error = 1.0 - r.settings.confidence;
  r.any = privacy::epsilon_lower(r.guesses, r.delta, error);
  r.gaussian = privacy::gaussian_epsilon_lower(r.guesses, r.delta, error);
  // With a privacy filter, later releases are chosen depending on earlier ones. Such releases have
  // no single trade-off curve, so the bound `own` is not computed.
  if (t.filter() != nullptr) return;
  try {
    r.own = privacy::epsilon_lower(r.guesses, t.ledger().releases(), r.delta, error,
                                   t.size().unit_rows);
  } catch (const std::domain_error&) {
    r.own.reset();  // a release that is not Gaussian noise on a sum
  }
}

void check(const TrainConfig& config, const AuditSettings& settings) {
  if (!method_entry(config.method).gives_privacy)
    throw InputError("--method: expected one with privacy for an audit, found " + config.method);
  if (settings.kind == CanaryKind::gradient && method_entry(config.method).linear_model)
    throw InputError("--canary: expected example with --method " + config.method +
                     ", which does not release sums of clipped gradients, found gradient");
  if (config.holdout)
    throw InputError("--holdout: expected none in an audit, which trains on all rows, found " +
                     value_text(*config.holdout));
  if (settings.canaries && *settings.canaries < kMinCanaries)
    throw InputError(fmt::format("--canaries: expected at least {}, found {}", kMinCanaries,
                                 *settings.canaries));
  if (!(settings.confidence > 0.0 && settings.confidence < 1.0))
    throw InputError(
        fmt::format("--confidence: expected a number in (0, 1), found {}", settings.confidence));
}

}  // namespace

bool AuditResult::refutes() const { return std::max({any, gaussian, own.value_or(0.0)}) > epsilon; }

AuditResult audit(const TrainConfig& config, const AuditSettings& settings, Reporter& reporter) {
  check(config, settings);
  const bool by_gradient = settings.kind == CanaryKind::gradient;
  const SharedKey key(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                  : make_key());
  const SecretKey own_key(audit_key(config));
  TrainConfig in_memory = config;
  in_memory.rows_in = RowsIn::memory;  // canaries are added to the rows
  Experiment e = prepare(in_memory, reporter);
  e.data.test = {};
  e.data.test_given = false;
  e.data.notes.clear();
  e.config.eval_every = 0;
  const std::uint64_t count = number_of_canaries(settings, e);
  Canaries canaries{.member = draw_membership(count, own_key.key())};
  if (by_gradient)
    add_gradient_canaries(e, canaries);
  else
    add_example_canaries(e, canaries, own_key.key());

  ProgressReporter progress(reporter, canaries);
  const auto training = Training::begin(std::move(e), key, progress);
  training->advance();

  AuditResult r;
  r.settings = settings;
  r.settings.canaries = count;
  if (!settings.guesses) r.settings.guesses = std::max<std::uint64_t>(2, count / 10);
  r.members = canaries.members();
  r.steps = training->step();
  r.seconds = training->seconds();
  const std::vector<double> scores =
      by_gradient ? canaries.scores->scores() : loss_scores(*training);
  for (std::size_t i = 0; i < scores.size(); ++i)
    r.scores.emplace_back(scores[i], canaries.member[i]);
  r.guesses = guess(r.scores, *r.settings.guesses);
  r.certificate = training->certificate();
  r.certificate.not_for_release.emplace_back(kNotForRelease);
  r.epsilon = r.certificate.promise.epsilon;
  r.delta = r.certificate.promise.delta;
  bound(r, *training);
  return r;
}

}  // namespace cudp
