#include <sstream>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "privacy/curve.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/norm_bound.hpp"
#include "runtime/run/initial_state.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/resume.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

void describe(const Run& run, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const PrivacyPlan& p = run.plan;
  const double epsilon =
      run.size.is_public() ? guarantee(p, releases(p, p.steps)).epsilon : *e.config.epsilon;
  reporter.info(fmt::format(
      "{}{}, {} ({} parameters) on {}{}", e.data.name,
      run.size.is_public() ? fmt::format(" ({} training examples)", e.data.train.size()) : "",
      e.network.spec.name, e.network.parameter_count, e.backend.name,
      e.config.precision == Precision::tf32 ? " in TF32" : ""));
  reporter.info(fmt::format(
      "epsilon {:.4g} at delta {:.3g}: sigma {:.5g}, {} steps of expected batch {:.0f}, C {:.4g}",
      epsilon, p.delta, p.noise_multiplier, p.steps, p.expected_batch, p.clip_norm));
  if (p.feature_noise > 0.0)
    reporter.info(fmt::format(
        "features rest on {}, released with sigma {:.5g}",
        e.config.features == Features::pca
            ? fmt::format(
                  "{} principal components of {} numbers", e.config.feature_dimensions,
                  static_cast<std::int64_t>(e.feature_release.size()) / e.config.feature_dimensions)
            : "the mean and variance of each channel",
        p.feature_noise));
  warn_of_weak_privacy(run.size, epsilon, p.delta, reporter);
  if (run.size.noise > 0.1 * run.size.value)
    reporter.warn(fmt::format(
        "the number of training examples is private and known as {:.0f} +-{:.0f}; the sampling "
        "rate may be far from the one meant (--size-is-public if it is)",
        run.size.value, run.size.noise));
}

bool has_filter(const Run& run) { return run.ledger.budget().has_value(); }

/// Lets the run go on from its step, as far as the budget allows. Under a key that is not the one
/// the run began with, its steps count again.
void limit_to_budget(Run& run) {
  const std::uint64_t allowed = run.ledger.authorised_until();
  run.last_step = run.plan.steps;
  if (has_filter(run)) return;  // it is asked as training goes on
  const auto& budget = run.experiment.config.epsilon;
  if (!budget || allowed >= run.plan.steps) return;
  run.last_step = allowed + affordable_steps(run.plan, run.ledger.phases(), *budget, allowed,
                                             run.plan.steps - allowed);
  if (run.last_step == 0 || run.last_step <= run.step)
    throw BudgetError(fmt::format("the budget is spent: epsilon {:.6g} of {:.6g} at step {} of {}",
                                  guarantee(run.plan, run.ledger.phases()).epsilon, *budget,
                                  run.step, run.plan.steps));
}

/// What a filter has left when the steps of the epoch in progress will have been made (again).
double left_after_epoch(Run& run) {
  const auto method = run.make_method();
  double left = divergence_left(run.ledger);
  if (run.dpis.epoch == run.step / run.steps_per_epoch())
    for (const privacy::Phase& p : method->phases(run.step, method->prepared_until(run.step)))
      left -= privacy::composed_rdp({&p, 1}, run.plan.order);
  return left;
}

/// The steps after the checkpoint will be told again.
void forget_diagnostics_after(const Run& run) {
  const fs::path path = run.folder.diagnostics();
  if (!fs::exists(path)) return;
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (j.is_object() && j.value("step", std::uint64_t{0}) <= run.step) kept += line + "\n";
  }
  write_atomically(path, kept, 0600);
}

}  // namespace

std::unique_ptr<Method> Run::make_method() {
  return cudp::make_method({.config = experiment.config,
                            .plan = plan,
                            .size = size.value,
                            .steps_per_epoch = steps_per_epoch(),
                            .network = experiment.network,
                            .arithmetic = experiment.backend.arithmetic(experiment.network)},
                           dpis);
}

Checkpoint checkpoint_of(const Run& run) {
  return {.step = run.step,
          .state = run.engine->state(),
          .plan = run.plan,
          .training_size = run.size.value,
          .config = write_config(run.experiment.config, Audience::owner),
          .model = run.experiment.model_text,
          .arithmetic = run.experiment.backend.arithmetic_name,
          .program = program_id(),
          .data = run.data_tag,
          .key_check = run.key_check,
          .ledger = run.ledger,
          .dpis = run.dpis,
          .metrics = run.metrics,
          .seconds = run.seconds,
          .feature_release = run.experiment.feature_release};
}

void save_ledger(const Run& run) { write_ledger(run.folder, run.ledger, *run.seal); }

void save_checkpoint(const Run& run) {
  save_checkpoint(run.folder.checkpoints(), checkpoint_of(run), *run.seal);
}

std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter) {
  if (!config.out.empty()) check_free(config.out);
  auto started = std::make_unique<Run>(prepare(config, reporter), RunFolder(""));
  Run& run = *started;
  Experiment& e = run.experiment;
  const SecretKey key(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                  : make_key());
  run.key_check = key_check(key.key());
  run.seal.emplace(key.key());
  run.data_tag = training_data_tag(e, *run.seal);
  if (config.method == MethodKind::norm_bound) e.config.clip = norm_bound(e.network, e.data.train);
  const double noise = size_noise(e.data, config);
  NewRunFolder place(run_place(e));
  run.size = training_size(e.data, noise, config.rng, key.key());
  plan_from_size(place, e, run.size, [&] {
    run.plan = make_plan(e.config, e.network, run.size, e.backend.arithmetic(e.network));
    if (config.method == MethodKind::dpis)
      run.ledger.limit(privacy::renyi_budget(run.plan.order, *config.epsilon,
                                             run.plan.delta - run.plan.failure));
    for (const privacy::Phase& phase : releases(run.plan, 0)) run.ledger.charge(phase);
    if (has_filter(run)) run.dpis.left = divergence_left(run.ledger);
    limit_to_budget(run);
  });

  run.folder = place.folder();
  write_atomically(run.folder.config(), write_config(e.config, Audience::release));
  save_ledger(run);
  show_features(e, release_for_features(e.data.train, feature_settings(e.config), run.size.value,
                                        run.size.most(run.plan.failure), run.plan.feature_noise,
                                        config.rng, key.key()));
  run.engine = make_engine(e, run.plan, run.size, key.key());
  run.engine->set_state(initial_state(e, key.key()));
  run.folder = publish_run(place, checkpoint_of(run), key.key(), *run.seal, run.lock, reporter);
  describe(run, reporter);
  return started;
}

std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter) {
  StoredRun stored = open_stored_run(flags, reporter);
  const Checkpoint& c = stored.checkpoint;
  auto restored = std::make_unique<Run>(prepare(stored.config, reporter, c.model), stored.folder);
  Run& run = *restored;
  run.lock = std::move(stored.lock);
  run.plan = c.plan;
  run.size = {c.training_size, c.plan.size_noise};
  run.step = c.step;
  run.dpis = c.dpis;
  run.metrics = c.metrics;
  run.seconds = c.seconds;
  check_same_run(stored, run.experiment, run.size);

  const bool same_key = stored.key.has_value();
  const SecretKey key = same_key ? *std::move(stored.key) : SecretKey(make_key());
  run.key_check = key_check(key.key());
  run.seal.emplace(key.key());
  run.data_tag = training_data_tag(run.experiment, *run.seal);
  show_features(run.experiment, c.feature_release);
  run.ledger = std::move(stored.ledger);
  if (!same_key) {
    run.ledger.fresh_key(run.make_method()->place(run.step));
    if (has_filter(run)) run.dpis.left = left_after_epoch(run);
    reporter.warn(stored.why + ": training goes on from step " + std::to_string(run.step) +
                  " with a new key, and repeated steps are paid again");
  }
  limit_to_budget(run);
  if (run.last_step < run.plan.steps)
    reporter.warn(fmt::format("the budget allows training up to step {} of {}", run.last_step,
                              run.plan.steps));
  run.engine = make_engine(run.experiment, run.plan, run.size, key.key());
  run.engine->set_state(c.state);

  if (!same_key) {
    // In this order a crash in between leaves no key, or one that is not taken for the old one.
    save_ledger(run);
    save_checkpoint(run);
    write_key(run.folder.key(), key.key());
  }
  write_metrics(run.folder, run.experiment.data, run.metrics);
  forget_diagnostics_after(run);
  reporter.info(fmt::format("resuming {} at step {}", run.folder.root().string(), run.step));
  describe(run, reporter);
  return restored;
}

}  // namespace cudp
