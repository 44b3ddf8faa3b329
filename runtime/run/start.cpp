#include <utility>

#include "runtime/base/interrupt.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/run/follow.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// A new run's folder: --out, or one in runs/ under a name of its own.
void make_place(std::optional<NewRunFolder>& place, const Experiment& e) {
  const FilesInChange lock;
  if (e.config.out.empty())
    place.emplace(reserve_run_folder(e.data.name + "-" + e.network.spec.name));
  else
    place.emplace(e.config.out);
}

}  // namespace

std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter, Witness* witness,
                               Ranks& ranks) {
  check_witness(witness, config);
  if (!config.out.empty()) check_free(config.out);
  const SharedKey key(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                  : make_key());
  std::optional<SharedKey> coins;
  if (config.holdout) coins.emplace(coins_of(config));
  introduce(ranks, {.config = config, .model = "", .key = key, .coins = coins});
  Experiment experiment = prepare(config, reporter, "", std::move(coins), ranks);
  check_alike(experiment, key.key());
  auto started = std::make_unique<Run>(RunFolder(""), experiment, key.key(), reporter);
  Run& run = *started;
  make_place(run.place, experiment);
  run.folder = run.place->folder();
  announce(ranks, {.kind = Order::Kind::begin});
  run.training = Training::begin(std::move(experiment), key, run, witness);
  observe_state(run);

  run.write_plan_certificate();
  // The last of its files, once the ledger is there; in its place the run can be resumed.
  run.save_checkpoint();
  write_key(run.folder.key(), key.key());
  run.lock.emplace(run.folder.checkpoints());
  {
    const FilesInChange lock;
    run.folder = run.place->publish();
    set_interrupt_line("interrupted; " + how_to_continue(run.folder.root().string()));
  }
  run.place.reset();
  reporter.keep_log(run.folder.log());
  run.describe();
  return started;
}

}  // namespace cudp
