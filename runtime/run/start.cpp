#include <functional>
#include <utility>

#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Where a new run's folder is to be: --out, or runs/ under a name of its own.
fs::path folder_of(const Experiment& e) {
  return e.config.out.empty() ? default_run_folder(e.data.name + "-" + e.network.spec.name)
                              : fs::path(e.config.out);
}

}  // namespace

std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter) {
  check_observation(config);
  if (!config.out.empty()) check_free(config.out);
  const SharedKey key(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                  : make_key());
  Experiment experiment = prepare(config, reporter);
  auto started = std::make_unique<Run>(RunFolder(""), experiment, key.key(), reporter);
  Run& run = *started;
  run.folder = run.place.emplace(folder_of(experiment)).folder();
  run.training = Training::begin(std::move(experiment), key, run);
  observe_state(run);

  run.write_plan_certificate();
  // The last of its files, once the ledger is there; in its place the run can be resumed.
  run.save_checkpoint();
  write_key(run.folder.key(), key.key());
  run.lock.emplace(run.folder.checkpoints());
  run.folder = run.place->publish();
  run.place.reset();
  reporter.keep_log(run.folder.log());
  run.describe();
  return started;
}

}  // namespace cudp
