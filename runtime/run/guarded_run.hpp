#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "privacy/filter.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "runtime/run/run.hpp"

namespace cudp {

/// A training in progress whose releases are not fixed ahead: a filter is asked before each.
/// Releases are numbered; the ledger's steps are these numbers.
struct GuardedRun {
  GuardedRun(Experiment what, RunFolder where, const privacy::Budget& budget)
      : experiment(std::move(what)), folder(std::move(where)), filter(budget) {}

  Experiment experiment;
  TrainingSize size;
  RunFolder folder;
  std::optional<FolderLock> lock;
  std::unique_ptr<LinearEngine> engine;
  std::unique_ptr<Engine> evaluator;
  std::optional<SecretKey> key;
  std::uint64_t key_check = 0;
  std::optional<Seal> seal;  ///< of the key
  std::string data_tag;      ///< training_data_tag

  privacy::Filter filter;
  DpAgdSettings settings;
  DpAgdState state;
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;  ///< of training so far
};

/// Whether a method asks a filter.
bool is_guarded(MethodKind method);

/// As start_run, resume_run and train do.
std::unique_ptr<GuardedRun> start_guarded_run(const TrainConfig& config, Reporter& reporter);
std::unique_ptr<GuardedRun> resume_guarded_run(const Settings& flags, Reporter& reporter);
RunResult train(GuardedRun& run, Reporter& reporter);

/// What a checkpoint of the run holds now.
Checkpoint checkpoint_of(const GuardedRun& run);

}  // namespace cudp
