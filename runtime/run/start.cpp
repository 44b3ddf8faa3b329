#include <functional>
#include <stdexcept>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/stored_run.hpp"
#include "runtime/training/certify.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Where a new run's folder is to be: --out, or runs/ under a name of its own.
fs::path folder_of(const Experiment& e) {
  return e.config.out.empty() ? default_run_folder(e.data.name + "-" + e.network.spec.name)
                              : fs::path(e.config.out);
}

void plan(Run& run) {
  try {
    run.method = run.make_method();
    run.budget->plan(first_ledger(run.experiment.config, run.size, *run.method));
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  } catch (const std::invalid_argument& e) {
    throw BudgetError(e.what());
  }
  run.last_step = run.method->steps();
}

/// Where a plan is refused and the size is private, the reason may tell the noisy number: that
/// release is charged and certified, and the folder is in its place, before the reason is told.
[[noreturn]] void certify_refusal(NewRunFolder& place, const Experiment& e,
                                  const TrainingSize& size, const privacy::Ledger& ledger,
                                  const Error& reason) {
  const RunFolder folder = place.folder();
  write_atomically(folder.config(), write_config(e.config, Audience::release));
  write_atomically(folder.ledger(), ledger.to_text(), 0600);
  write_atomically(folder.certificate(), to_text(make_refusal_certificate(e, size, ledger)));
  const std::string certificate = place.publish().certificate().string();
  throw Error(std::string(reason.what()) +
                  "; the noisy number of training examples was paid for: " + certificate,
              reason.code());
}

}  // namespace

std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter) {
  check_observation(config);
  if (!config.out.empty()) check_free(config.out);
  const SharedKey key(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                  : make_key());
  auto started = std::make_unique<Run>(prepare(config, reporter), RunFolder(""), key.key());
  Run& run = *started;
  Experiment& e = run.experiment;
  const double noise = size_noise(e.data, config);
  NewRunFolder place(folder_of(e));
  run.folder = place.folder();
  run.open_budget(privacy::Ledger());
  if (noise > 0.0) run.budget->plan(ledger_of_size(noise));
  Gate& gate = run.gate.emplace(config.rng, key, *run.budget);
  observe_beginning(run, key.key());
  run.size = training_size(e.data, noise, gate);
  try {
    plan(run);
  } catch (const Error& reason) {
    if (run.size.is_public()) throw;
    certify_refusal(place, e, run.size, ledger_of_size(noise), reason);
  }

  run.outputs().write_config(e.config);
  release_features(e, run.size, gate);
  run.method->start({.train = e.data.train, .backend = e.backend, .key = key, .gate = gate},
                    *run.budget);
  observe_state(run);

  run.write_plan_certificate();
  // The last of its files, once the ledger is there; in its place the run can be resumed.
  run.save_checkpoint();
  write_key(run.folder.key(), key.key());
  run.lock.emplace(run.folder.checkpoints());
  run.folder = place.publish();
  reporter.keep_log(run.folder.log());
  run.describe(reporter);
  return started;
}

}  // namespace cudp
