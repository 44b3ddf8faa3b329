#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/base/random_key.hpp"
#include "runtime/methods/linear_method.hpp"
#include "runtime/run/run.hpp"

namespace cudp {

/// A training by a method that knows all its releases before the first (methods/linear_method.hpp).
/// The ledger is charged with all of them before the run's folder appears, whatever happens then. A
/// run that was killed begins again: under its key it releases what it would have. Without the key
/// it would release a second time what was paid for once, and is refused.
struct LinearRun {
  LinearRun(Experiment what, RunFolder where)
      : experiment(std::move(what)), folder(std::move(where)) {}

  Experiment experiment;
  TrainingSize size;
  RunFolder folder;
  std::optional<FolderLock> lock;
  std::optional<SecretKey> key;
  privacy::Ledger ledger;
  std::unique_ptr<LinearMethod> method;
};

/// As start_run, resume_run and train do.
std::unique_ptr<LinearRun> start_linear_run(const TrainConfig& config, Reporter& reporter);
std::unique_ptr<LinearRun> resume_linear_run(const Settings& flags, Reporter& reporter);
RunResult train(LinearRun& run, Reporter& reporter);

}  // namespace cudp
