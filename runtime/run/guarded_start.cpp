#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/methods/dp_agd_budget.hpp"
#include "runtime/run/guarded_run.hpp"
#include "runtime/run/initial_weights.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/resume.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

std::string method_text(const DpAgdState& s) {
  return Json{{"rho_gradient", s.rho_gradient}, {"largest", s.largest},   {"chosen", s.chosen},
              {"iterations", s.iterations},     {"releases", s.releases}, {"rho", s.rho}}
      .dump();
}

DpAgdState state_of(const Checkpoint& c) {
  const Json j = Json::parse(c.method, nullptr, false);
  if (!j.is_object()) throw Error("checkpoint: expected the state of DP-AGD, found none");
  DpAgdState s;
  s.w = c.state.parameters;
  s.rho_gradient = j.at("rho_gradient").get<double>();
  s.largest = j.at("largest").get<double>();
  s.chosen = j.at("chosen").get<std::vector<double>>();
  s.iterations = j.at("iterations").get<std::uint64_t>();
  s.releases = j.at("releases").get<std::uint64_t>();
  s.rho = j.at("rho").get<double>();
  return s;
}

/// What follows from the run's key.
void take_key(GuardedRun& run) {
  run.key_check = key_check(run.key->key());
  run.seal.emplace(run.key->key());
  run.data_tag = training_data_tag(run.experiment, *run.seal);
}

DpAgdSettings settings_of(const GuardedRun& run) {
  const TrainConfig& config = run.experiment.config;
  return dp_agd_settings(config, run.filter.limit(), run.size.value,
                         run.size.most(kFailureShare * *config.delta));
}

void make_engines(GuardedRun& run) {
  const Experiment& e = run.experiment;
  const int threads = static_cast<int>(e.config.threads);
  run.engine = e.backend.make_linear_engine(e.data.train, e.network.spec.loss,
                                            run.settings.most_examples, threads);
  EngineSettings settings;
  settings.threads = threads;
  run.evaluator = e.backend.make_engine(e.network, settings);
}

void describe(const GuardedRun& run, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const DpAgdSettings& s = run.settings;
  reporter.info(fmt::format(
      "{}{}, {} ({} parameters) on {}", e.data.name,
      run.size.is_public() ? fmt::format(" ({} training examples)", e.data.train.size()) : "",
      e.network.spec.name, e.network.parameter_count, e.backend.name));
  reporter.info(fmt::format(
      "epsilon {:.4g} at delta {:.3g}: rho {:.4g}, {:.3g} for a first gradient and {:.3g} for a "
      "step size, C {:.4g} and {:.4g}",
      run.filter.budget().epsilon, run.filter.budget().delta, run.filter.limit(), s.rho_gradient,
      s.rho_selection, s.gradient_clip, s.loss_clip));
  warn_of_weak_privacy(run.size, run.filter.budget().epsilon, run.filter.budget().delta, reporter);
}

/// The filter that a ledger ends with, or the reason why there is none.
privacy::Filter filter_of(const RunFolder& folder, privacy::Ledger ledger) {
  try {
    return privacy::Filter(std::move(ledger));
  } catch (const std::invalid_argument& e) {
    throw Error(folder.ledger().string() + ": " + e.what());
  }
}

}  // namespace

bool is_guarded(MethodKind method) { return method == MethodKind::dp_agd; }

Checkpoint checkpoint_of(const GuardedRun& run) {
  Checkpoint c;
  c.step = run.state.iterations;
  c.state.parameters = run.state.w;
  c.plan.delta = run.filter.budget().delta;
  c.plan.size_noise = run.size.noise;
  c.training_size = run.size.value;
  c.config = write_config(run.experiment.config, Audience::owner);
  c.model = run.experiment.model_text;
  c.arithmetic = run.experiment.backend.arithmetic_name;
  c.program = program_id();
  c.data = run.data_tag;
  c.key_check = run.key_check;
  c.ledger = run.filter.ledger();
  c.metrics = run.metrics;
  c.seconds = run.seconds;
  c.method = method_text(run.state);
  return c;
}

std::unique_ptr<GuardedRun> start_guarded_run(const TrainConfig& config, Reporter& reporter) {
  if (!config.out.empty()) check_free(config.out);
  auto started = std::make_unique<GuardedRun>(prepare_linear(config, reporter), RunFolder(""),
                                              dp_agd_budget(config));
  GuardedRun& run = *started;
  const Experiment& e = run.experiment;
  run.key.emplace(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                              : make_key());
  take_key(run);
  const double noise = size_noise(e.data, config);
  if (noise > 0.0 && !run.filter.charge({privacy::Gaussian{noise}, 1}))
    throw BudgetError("the budget does not allow to count the training examples");
  NewRunFolder place(run_place(e));
  run.size = training_size(e.data, noise, config.rng, run.key->key());
  plan_from_size(place, e, run.size, [&] {
    run.settings = settings_of(run);
    make_engines(run);
  });
  run.state.w = initial_weights(e.network, config.rng, run.key->key());
  run.state.rho_gradient = run.settings.rho_gradient;
  run.state.largest = run.settings.first_largest;
  if (!run.size.is_public()) run.state.rho = run.filter.cost(privacy::Gaussian{run.size.noise});

  run.folder = place.folder();
  write_atomically(run.folder.config(), write_config(e.config, Audience::release));
  write_ledger(run.folder, run.filter.ledger(), *run.seal);
  run.folder =
      publish_run(place, checkpoint_of(run), run.key->key(), *run.seal, run.lock, reporter);
  describe(run, reporter);
  return started;
}

std::unique_ptr<GuardedRun> resume_guarded_run(const Settings& flags, Reporter& reporter) {
  StoredRun stored = open_stored_run(flags, reporter);
  const Checkpoint& c = stored.checkpoint;
  auto restored = std::make_unique<GuardedRun>(prepare_linear(stored.config, reporter, c.model),
                                               stored.folder, dp_agd_budget(stored.config));
  GuardedRun& run = *restored;
  run.lock = std::move(stored.lock);
  run.size = {c.training_size, c.plan.size_noise};
  check_same_run(stored, run.experiment, run.size);
  run.state = state_of(c);
  run.metrics = c.metrics;
  run.seconds = c.seconds;
  run.filter = filter_of(run.folder, std::move(stored.ledger));
  run.key = std::move(stored.key);
  const bool same_key = run.key.has_value();
  if (!same_key) {
    run.key.emplace(make_key());
    run.filter.fresh_key(run.state.releases);
    // Releases after the checkpoint were paid and are lost.
    run.state.rho = run.filter.limit() * (1.0 - run.filter.remaining());
    reporter.warn(stored.why + ": training goes on from iteration " +
                  std::to_string(run.state.iterations) +
                  " with a new key, and repeated releases are paid again");
  }
  take_key(run);
  run.settings = settings_of(run);
  make_engines(run);
  if (!same_key) {
    // In this order a crash in between leaves no key, or one that is not taken for the old one.
    write_ledger(run.folder, run.filter.ledger(), *run.seal);
    save_checkpoint(run.folder.checkpoints(), checkpoint_of(run), *run.seal);
    write_key(run.folder.key(), run.key->key());
  }
  write_metrics(run.folder, run.experiment.data, run.metrics);
  reporter.info(
      fmt::format("resuming {} at iteration {}", run.folder.root().string(), run.state.iterations));
  describe(run, reporter);
  return restored;
}

}  // namespace cudp
