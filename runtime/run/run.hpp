#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/files.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/gate/witness.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/results/result.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/outputs.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// A training in progress: what it is, and how far it is.
struct Run {
  Run(Experiment what, RunFolder where, const RandomKey& key);

  Experiment experiment;
  TrainingSize size;
  RunFolder folder;
  std::optional<FolderLock> lock;
  std::optional<Observation> observation;  ///< of seeded runs alone (observation.hpp)
  std::uint64_t key_check = 0;
  Seal seal;             ///< of the run's key
  std::string data_tag;  ///< training_data_tag

  std::optional<Gate> gate;  ///< of the run's key
  std::unique_ptr<Method> method;
  std::optional<PrivacyBudget> budget;
  std::uint64_t step = 0;       ///< steps done
  std::uint64_t last_step = 0;  ///< where to stop: the method's steps, or what the budget allows
  std::vector<MetricsRow> metrics;
  double seconds = 0.0;          ///< of training so far
  bool ledger_was_lost = false;  ///< as Checkpoint has it

  /// The method that the config names, for the run's size.
  std::unique_ptr<Method> make_method() const;
  /// Asks for releases from now on; the ledger is durable, in the run's folder, when one is
  /// allowed. taken: of the ledger until now.
  void open_budget(privacy::Ledger ledger, std::vector<PrivacyBudget::Taken> taken = {});
  /// Puts a checkpoint of the run as it is now into its folder.
  void save_checkpoint() const;
  /// Where what it makes for others goes.
  Outputs outputs() const;
  /// Puts the certificate of the plan, which says that the run is not finished, where the final one
  /// will be: what a killed run leaves to be published is never without one.
  void write_plan_certificate() const;
  /// Tells the user what is trained, and what it promises.
  void describe(Reporter& reporter) const;
};

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

/// Writes the release of a finished run, and removes what only a run in progress needs.
RunResult finish(Run& run, Reporter& reporter);

}  // namespace cudp
