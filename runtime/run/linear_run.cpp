#include "runtime/run/linear_run.hpp"

#include <chrono>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/options.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/resume.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

std::string method_name(const LinearRun& run) {
  return std::get<std::string>(*find_option("method")->get(run.experiment.config));
}

void make_method(LinearRun& run) {
  const Network& network = run.experiment.network;
  run.method =
      make_linear_method(run.experiment.config,
                         {.loss = network.spec.loss,
                          .dimension = static_cast<int>(network.parameter_count),
                          .examples = run.size.value,
                          .most = run.size.most(0.5 * kFailureShare * *run.experiment.config.delta),
                          .size_noise = run.size.noise});
}

/// Before anything is released; a run that is resumed needs no more.
Checkpoint first_checkpoint(const LinearRun& run, const Seal& seal) {
  Checkpoint c;
  c.state.parameters.assign(run.experiment.network.parameter_count, 0.0f);
  c.plan.delta = *run.experiment.config.delta;
  c.plan.size_noise = run.size.noise;
  c.training_size = run.size.value;
  c.config = write_config(run.experiment.config, Audience::owner);
  c.model = run.experiment.model_text;
  c.arithmetic = run.experiment.backend.arithmetic_name;
  c.program = program_id();
  c.data = training_data_tag(run.experiment, seal);
  c.key_check = key_check(run.key->key());
  c.ledger = run.ledger;
  return c;
}

void describe(const LinearRun& run, Reporter& reporter) {
  const Experiment& e = run.experiment;
  reporter.info(fmt::format(
      "{}{}, {} ({} parameters) on {}", e.data.name,
      run.size.is_public() ? fmt::format(" ({} training examples)", e.data.train.size()) : "",
      e.network.spec.name, e.network.parameter_count, e.backend.name));
  reporter.info(fmt::format("{}: epsilon {:.4g} at delta {:.3g}", method_name(run),
                            run.method->epsilon(), *e.config.delta));
  warn_of_weak_privacy(run.size, run.method->epsilon(), *e.config.delta, reporter);
}

Json release_of(const privacy::Step& step) {
  Json j{{"mechanism", privacy::name(step.mechanism)}};
  if (const auto* gaussian = std::get_if<privacy::Gaussian>(&step.mechanism))
    j["sigma"] = gaussian->sigma;
  if (const auto* selection = std::get_if<privacy::BoundedRange>(&step.mechanism))
    j["epsilon"] = selection->epsilon;
  if (const auto* stated = std::get_if<privacy::ApproximateDp>(&step.mechanism)) {
    j["epsilon"] = stated->epsilon;
    j["delta"] = stated->delta;
  }
  j["count"] = step.count;
  return j;
}

/// release/privacy.json.
Json certificate_of(const LinearRun& run) {
  const Experiment& e = run.experiment;
  CertificateFacts facts;
  facts.config = e.config;
  facts.plan.size_noise = run.size.noise;
  facts.ledger = run.ledger;
  facts.dataset = e.data.name;
  facts.backend = e.backend.name;
  facts.test_set = test_set_text(e.data);
  facts.training_size = run.size.value;
  facts.unsafe = unsafe_flags(e);
  for (std::string& reason : run.method->obstacles()) facts.unsafe.push_back(std::move(reason));

  Json j = begin_certificate(facts);
  j["epsilon"] = run.method->epsilon();
  j["delta"] = *e.config.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["method"] = method_name(run);
  j["sampling"] = "all examples";
  run.method->describe(j);
  j["accountant_version"] = build_info().version;
  j["releases"] = Json::array();
  for (const privacy::Step& step : run.ledger.steps()) j["releases"].push_back(release_of(step));
  add_circumstances(j, facts);
  return j;
}

}  // namespace

std::unique_ptr<LinearRun> start_linear_run(const TrainConfig& config, Reporter& reporter) {
  if (!config.out.empty()) check_free(config.out);
  auto started = std::make_unique<LinearRun>(prepare_linear(config, reporter), RunFolder(""));
  LinearRun& run = *started;
  const Experiment& e = run.experiment;
  run.key.emplace(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                              : make_key());
  const double noise = size_noise(e.data, config);
  NewRunFolder place(run_place(e));
  run.size = training_size(e.data, noise, config.rng, run.key->key());
  plan_from_size(place, e, run.size, [&] {
    make_method(run);
    if (run.method->epsilon() > *config.epsilon)
      throw BudgetError(fmt::format("{} spends epsilon {:.6g}, the budget is {:.6g}",
                                    method_name(run), run.method->epsilon(), *config.epsilon));
  });
  if (!run.size.is_public()) run.ledger.charge(privacy::Step{privacy::Gaussian{run.size.noise}, 1});
  for (const privacy::Step& step : run.method->releases()) run.ledger.charge(step);

  run.folder = place.folder();
  write_atomically(run.folder.config(), write_config(e.config, Audience::release));
  const Seal seal(run.key->key());
  write_ledger(run.folder, run.ledger, seal);
  run.folder =
      publish_run(place, first_checkpoint(run, seal), run.key->key(), seal, run.lock, reporter);
  describe(run, reporter);
  return started;
}

std::unique_ptr<LinearRun> resume_linear_run(const Settings& flags, Reporter& reporter) {
  StoredRun stored = open_stored_run(flags, reporter);
  const Checkpoint& c = stored.checkpoint;
  if (!stored.key)
    throw BudgetError(stored.folder.root().string() + ": " + stored.why +
                      ", and what the run's own key may have drawn took all of the budget; train "
                      "anew on a budget of its own");
  auto restored =
      std::make_unique<LinearRun>(prepare_linear(stored.config, reporter, c.model), stored.folder);
  LinearRun& run = *restored;
  run.lock = std::move(stored.lock);
  run.size = {c.training_size, c.plan.size_noise};
  check_same_run(stored, run.experiment, run.size);
  run.key = std::move(stored.key);
  run.ledger = std::move(stored.ledger);
  make_method(run);
  reporter.info("beginning again in " + run.folder.root().string());
  describe(run, reporter);
  return restored;
}

RunResult train(LinearRun& run, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<float> w = run.method->train({.train = e.data.train,
                                                  .threads = static_cast<int>(e.config.threads),
                                                  .generator = e.config.rng,
                                                  .key = run.key->key()});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  EngineSettings settings;
  settings.threads = static_cast<int>(e.config.threads);
  const auto evaluator = e.backend.make_engine(e.network, settings);
  TrainState weights;
  weights.parameters = w;
  evaluator->set_state(weights);
  const Json certificate = certificate_of(run);
  MetricsRow row{.epoch = 1.0, .step = 1, .epsilon = certificate["epsilon"].get<double>()};
  measure(*evaluator, e.data.test, false, row);
  write_release(run.folder, e, w, {row}, certificate, reporter);

  RunResult result;
  result["epsilon"] = certificate["epsilon"];
  result["delta"] = certificate["delta"];
  result["steps"] = 1;
  result["seconds"] = seconds;
  // By the size that was paid for: with the real one, seconds would tell it.
  result["examples_per_second"] = seconds > 0.0 ? run.size.value / seconds : 0.0;
  return complete(run.folder, e, row, certificate, std::move(result));
}

}  // namespace cudp
