#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/data/given_arrays.hpp"
#include "runtime/results/event_file.hpp"
#include "runtime/results/result.hpp"
#include "runtime/run/authenticator.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/metrics_file.hpp"
#include "runtime/run/outputs.hpp"
#include "runtime/run/reservation.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/loaded_data.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// Callbacks of a program (such as the Python module) that trains in its own process instead of
/// starting `cudp`. The training thread calls them. No signal handler is installed then; the
/// program stops a training by returning true from interrupts().
class RunCaller {
 public:
  RunCaller() = default;
  virtual ~RunCaller() = default;
  RunCaller(const RunCaller&) = delete;
  RunCaller& operator=(const RunCaller&) = delete;

  /// Returns whether the training should stop: it then writes a checkpoint and ends. Called between
  /// steps.
  virtual bool interrupts() = 0;
  /// Called when lines of metrics were added. rows: all lines so far, without numbers that must
  /// stay in private/.
  virtual void measured(const std::vector<MetricsRow>& rows) = 0;
};

/// A training together with its folder on disk. Stores in the folder everything that is needed to
/// resume the training, and reports progress to the user.
class Run final : public TrainingObserver {
 public:
  /// Makes a run with a folder that exists. key: the run's random key. caller: callbacks of a
  /// program that trains in its own process; null for `cudp` itself, which is stopped by signals.
  /// reporter and caller must outlive the run.
  Run(RunFolder where, const RandomKey& key, Reporter& reporter, RunCaller* caller = nullptr);

  RunFolder folder;
  std::optional<NewRunFolder> new_folder;  ///< set until the folder is moved to its final path
  std::optional<FolderLock> lock;
  std::uint64_t key_check = 0;
  Authenticator authenticator;   ///< authentication codes under the run's key
  std::string data_tag;          ///< authentication code of the data, see data_tag_of()
  bool ledger_was_lost = false;  ///< whether the ledger was lost and restored (Checkpoint)
  std::unique_ptr<Training> training;
  Reservation reservation;  ///< charges to budget files that several trainings share
  /// Time until which the run's files are written without syncing them to disk (UnsyncedStart);
  /// nullopt if they are synced.
  std::optional<std::chrono::steady_clock::time_point> unsynced_until;
  std::string boot;  ///< boot_id() at the start of a run that is not synced at first; else ""

  /// Opens the TensorBoard event file and writes it from now on, if --tensorboard is set. Requires
  /// that the run has its folder and, if it is resumed, the metrics of its earlier steps.
  void open_events();

  /// Returns the object that writes the run's results.
  Outputs outputs() const { return {folder, training->experiment()}; }
  /// Stores a checkpoint of the current state in the run's folder.
  void save_checkpoint() { save_checkpoint(*training); }
  /// Writes a certificate of the planned training, which states that the run is not finished. The
  /// final certificate replaces it, so a killed run never leaves results without a certificate.
  void write_plan_certificate() const;
  /// Prints for the user what is trained, on which data, and with which privacy guarantee.
  void describe() const;
  /// Trains to the last step. Throws Error if a signal or the caller interrupts the training; the
  /// message has the command that resumes it.
  void advance();

  /// Ends the time at the start of a run in which its files are not synced to disk (UnsyncedStart):
  /// writes all of them to disk, with a checkpoint that states this; files that are written later
  /// are synced.
  void end_unsynced_start();

  /// Writes the ledger to the run's folder, and syncs it to disk before it returns, unless the
  /// run's files are not synced (UnsyncedStart) or it has no charges yet.
  void charged(const privacy::Ledger& ledger) override;
  void opens(const Training& training) override;
  /// Called if the number of examples has just been released with noise and the training cannot
  /// start with this number. Moves the folder to its final path, and writes a certificate for the
  /// release of that number. Then throws an error with the text of `reason`, which may reveal the
  /// noisy number.
  void refused(const Training& training, const Error& reason) override;
  void planned(const Training& training) override;
  void checkpoint_due(const Training& training) override;
  void holdout_due(const Training& training) override;
  void measured(const std::vector<MetricsRow>& rows) override;
  void diagnosed(std::uint64_t epoch, std::uint64_t step, const Diagnostics& seen) override;
  void progressed(const Progress& progress) override {
    reporter_.progress(progress);
    if (metrics_file_) metrics_file_->progressed(progress);
  }
  void enters(const char* phase) override { reporter_.timings().enter(phase); }
  void warned(const std::string& line) override { reporter_.warn(line); }
  bool interrupts() override;

  Reporter& reporter() const { return reporter_; }
  /// Starts to write the progress file for a monitoring system, if --metrics-file is set. Throws
  /// InputError if the file cannot be written.
  void open_metrics_file();

 private:
  void save_checkpoint(const Training& training);

  Reporter& reporter_;
  RunCaller* caller_;
  std::optional<MetricsFile> metrics_file_;
  std::optional<InterruptWatch> watch_;  ///< set while the run trains and `caller` is null
  std::optional<EventFile> events_;
  /// Time at which the metrics were last written, and whether later ones are not written yet.
  std::chrono::steady_clock::time_point metrics_written_;
  bool metrics_are_behind_ = false;
  bool stopped_ = false;  ///< whether `caller` has interrupted the training
};

/// Starts a run. Makes all checks that are possible before a file is written, then creates the
/// run's folder, with a checkpoint before the first step. release_observer: receives all released
/// values; may be null. caller: callbacks of a program that trains in its own process, or null.
/// release_observer, ranks and caller must outlive the run; this process is rank 0 of `ranks`.
/// Throws InputError if settings or data are not valid, BudgetError if the budget does not suffice.
std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter,
                               ReleaseObserver* release_observer = nullptr, Ranks& ranks = alone(),
                               RunCaller* caller = nullptr);

/// Opens an interrupted run at its newest undamaged checkpoint. Throws InputError if flags or data
/// differ from those of the run, BudgetError if the budget does not suffice. flags: may change only
/// settings that do not affect the result. arrays: the run's data, if it was started with arrays of
/// the calling program. budgets: budget files that are charged; must be those with which the run
/// was started. data: data already in memory, to be used instead of reading files.
/// release_observer, ranks, caller: as for start_run().
std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter,
                                ReleaseObserver* release_observer = nullptr, Ranks& ranks = alone(),
                                RunCaller* caller = nullptr, const ArraysInUse& arrays = {},
                                const BudgetsInUse& budgets = {}, const DataInUse& data = {});

/// Throws InputError if TensorBoard events must not be written to the path of --tensorboard,
/// because the run's metrics are private, or because the path is inside a folder with results of
/// the run. folder: the run's folder; empty if not known yet.
void check_events(const TrainConfig& config, const std::filesystem::path& folder);

/// Returns the command with which a user resumes an interrupted run.
std::string resume_command(const std::string& run);

/// Returns the result of the run that --resume names, if it is complete; nullopt if it is not.
/// Throws InputError if the run is a single training of `cudp tune`, which only the tuning may
/// resume, or if `flags` would change a setting of the run; the message then has the setting's
/// name.
std::optional<RunResult> finished_result(const Settings& flags);

/// Whether pictures of the results are drawn at the end of a run.
enum class DrawPictures { yes, no };

/// Trains to the last step, writes the results, and removes the random key and the checkpoints.
/// Throws Error if a signal or the caller interrupts the training; the message has the command that
/// resumes it.
RunResult train(Run& run, DrawPictures draw = DrawPictures::yes);

/// Removes the files that only a run in progress needs: random key, checkpoints, coded rows, and
/// test results of held-out rows (which are in release/ by then). Such files remain if a process is
/// killed just after it has completed its run. Requires that the run is complete.
void remove_leftovers(const RunFolder& folder);

/// Returns the result that a run has stored in its folder; nullopt if the run is not complete.
/// Throws Error if the file is damaged.
std::optional<RunResult> stored_result(const RunFolder& folder);

}  // namespace cudp
