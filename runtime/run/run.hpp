#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/ledger.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/settings.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/experiment.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/make_plan.hpp"

namespace cudp {

/// A training in progress: what it is, and how far it is.
struct Run {
  Run(Experiment what, RunFolder where) : experiment(std::move(what)), folder(std::move(where)) {}

  Experiment experiment;
  PrivacyPlan plan;
  TrainingSize size;
  RunFolder folder;
  std::optional<FolderLock> lock;
  std::unique_ptr<Engine> engine;  ///< holds the state
  std::uint64_t key_check = 0;
  std::optional<Seal> seal;  ///< of the run's key
  std::string data_tag;      ///< training_data_tag

  privacy::Ledger ledger;
  DpisEpoch dpis;               ///< of method dpis
  std::uint64_t step = 0;       ///< steps done
  std::uint64_t last_step = 0;  ///< where to stop: the plan's steps, or what the budget allows
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;  ///< of training so far

  std::unique_ptr<Method> make_method();
  std::uint64_t steps_per_epoch() const { return size.steps_per_epoch(experiment.config.batch); }
};

/// What a finished run says of itself, on stdout and in private/result.json.
using RunResult = nlohmann::ordered_json;

/// Everything that can be refused is refused before anything is written; then makes the run folder,
/// with a checkpoint before the first step. Throws InputError, BudgetError.
std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter);

/// Opens an interrupted run at its newest intact checkpoint. `flags` may change what does not
/// matter to the result. Throws InputError, BudgetError.
std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter);

/// The result of a run folder whose run is complete; empty if it is not.
std::optional<RunResult> finished_result(const RunFolder& folder);

/// Trains to the end, writes the release, removes the key and the checkpoints.
/// Throws Error, with the command that continues, when a signal interrupts it.
RunResult train(Run& run, Reporter& reporter);

/// What a checkpoint of the run holds now.
Checkpoint checkpoint_of(const Run& run);

/// Makes the ledger durable. To be called before the steps it authorises.
void save_ledger(const Run& run);

/// Puts a checkpoint of the run as it is now into its folder.
void save_checkpoint(const Run& run);

/// Writes the release of a finished run, and removes what only a run in progress needs.
RunResult finish(Run& run, double examples_per_second, Reporter& reporter);

}  // namespace cudp
