#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/results/result.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/outputs.hpp"
#include "runtime/run/seal.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// A training and its folder: it observes the training, keeps what it needs to go on, and tells the
/// user.
class Run final : public TrainingObserver {
 public:
  /// experiment: as prepare() left it. reporter outlives the run.
  Run(RunFolder where, const Experiment& experiment, const RandomKey& key, Reporter& reporter);

  RunFolder folder;
  std::optional<NewRunFolder> place;  ///< of a run whose folder is not in its place yet
  std::optional<FolderLock> lock;
  std::uint64_t key_check = 0;
  Seal seal;                     ///< of the run's key
  std::string data_tag;          ///< data_tag_of
  bool ledger_was_lost = false;  ///< as Checkpoint has it
  std::unique_ptr<Training> training;

  /// Writes what it makes for others.
  Outputs outputs() const { return {folder, training->experiment()}; }
  /// Puts a checkpoint of the run as it is now into its folder.
  void save_checkpoint() const { save_checkpoint(*training); }
  /// Puts the certificate of the plan, which says that the run is not finished, where the final one
  /// will be: what a killed run leaves to be published is never without one.
  void write_plan_certificate() const;
  /// Tells the user what is trained, and what it promises.
  void describe() const;
  /// Trains on. Throws Error, with the command that continues, when a signal interrupts it.
  void advance();

  /// The ledger is durable, in the run's folder, when this returns.
  void charged(const privacy::Ledger& ledger) override;
  void opens(const Training& training) override;
  /// The reason may tell the noisy number of a private size: that release is charged and certified,
  /// and the folder is in its place, before the reason is told. Throws.
  void refused(const Training& training, const Error& reason) override;
  void planned(const Training& training) override;
  void checkpoint_due(const Training& training) override { save_checkpoint(training); }
  void holdout_due(const Training& training) override;
  void measured(const std::vector<MetricsRow>& rows) override { outputs().write_metrics(rows); }
  void diagnosed(std::uint64_t epoch, std::uint64_t step, const Diagnostics& seen) override;
  void progressed(const Progress& progress) override { reporter_.progress(progress); }
  void warned(const std::string& line) override { reporter_.warn(line); }
  bool interrupts() override { return watch_ && watch_->requested(); }

  Reporter& reporter() const { return reporter_; }

 private:
  void save_checkpoint(const Training& training) const;

  Reporter& reporter_;
  std::optional<InterruptWatch> watch_;  ///< while it trains
};

/// Everything that can be refused is refused before anything is written; then makes the run folder,
/// with a checkpoint before the first step. witness: who is shown what leaves, or null; outlives
/// the run, as do the ranks, of which this is the first. Throws InputError, BudgetError.
std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter,
                               Witness* witness = nullptr, Ranks& ranks = alone());

/// Opens an interrupted run at its newest intact checkpoint. `flags` may change what does not
/// matter to the result. Throws InputError, BudgetError.
std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter,
                                Witness* witness = nullptr, Ranks& ranks = alone());

/// What a user types to go on with an interrupted run.
std::string how_to_continue(const std::string& run);

/// The result of the run folder that --resume names, if its run is complete; empty if it is not.
/// Throws InputError, naming the setting, if `flags` ask for another run.
std::optional<RunResult> finished_result(const Settings& flags);

/// Trains to the end, writes the release, removes the key and the checkpoints.
/// Throws Error, with the command that continues, when a signal interrupts it.
RunResult train(Run& run);

}  // namespace cudp
