#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/interrupt.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/sweep/request.hpp"
#include "runtime/sweep/table.hpp"
#include "runtime/sweep/trainings.hpp"

namespace cudp {

/// A sweep: trainings with all combinations of the values that the user lists for some settings.
/// The data are read once, and the trainings share a cache of results of the privacy accountant.
/// Each training is a process of its own, forked from this one. Like any other run it has its own
/// folder, a random key from the operating system, a privacy ledger and a certificate.
class Sweep {
 public:
  /// Resolves the settings of all runs, and finds the runs that an earlier, interrupted sweep in
  /// the same folder has finished. Writes nothing. Throws InputError if settings are not valid, or
  /// if the folder has a sweep with other settings.
  Sweep(SweepRequest request, Reporter& reporter);
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;
  ~Sweep() = default;

  /// Returns the number of runs of the whole sweep.
  std::size_t size() const { return runs_.size(); }
  /// Returns the number of unfinished runs in this process's part of the sweep (--share).
  std::size_t runs_left() const;
  /// Returns the maximum number of runs that are made at the same time.
  int jobs() const;

  /// Reads the data of the runs that are not finished, and computes the planned privacy cost of
  /// each of these runs. Writes nothing. If a run would fail before it releases anything, throws
  /// the error with which it would fail.
  void prepare();

  /// Returns the privacy cost of each run of the whole sweep: what its certificate states or, if it
  /// has none yet, what is planned. The list also has the cost of each earlier run that began and
  /// whose folder was removed since. Call after prepare().
  std::vector<PlannedSpending> spendings() const;

  /// Makes all unfinished runs of this process's part of the sweep (--share). Creates the folder
  /// first, if it does not exist. end: handles signals until the first run starts; it is then
  /// destroyed, because its thread must not live while processes are forked. Throws Error if a run
  /// fails or a signal interrupts it; the runs in progress are then ended with a checkpoint.
  void run(std::optional<EndOnSignal>& end);

  /// Removes random keys and checkpoints of runs that are complete. A run usually removes them
  /// itself, but its process may be killed before it does; no later call resumes such a run.
  void remove_leftovers_of_runs() const;

  /// Returns the table of the sweep's results, with all runs that are finished so far.
  SweepTable table() const;
  /// Writes the table of results into the sweep's folder: the part that may be published into
  /// release/, the whole table into private/.
  void write(const SweepTable& table) const;

  const std::filesystem::path& folder() const { return folder_; }
  /// Returns whether the table has metrics of at least one run that must not be published, because
  /// they were measured on private rows without noise.
  static bool has_private_part(const SweepTable& table);

 private:
  /// A run of the sweep. cell: index of its combination of settings in cells_.
  struct ScheduledRun {
    std::size_t cell = 0;
    bool mine = true;  ///< whether this process makes the run (--share)
  };
  RunFolder run_folder(std::size_t run) const;
  std::string run_name(std::size_t run) const;
  std::string description(std::size_t run) const;
  bool is_over(std::size_t run) const;
  /// Returns the config with which a run is trained: the settings of its combination, with the
  /// run's folder as `out`, and with the data that are in memory already.
  TrainConfig config_of(std::size_t run) const;
  /// Returns the file that lists the runs that began in this run's folder: epsilon and delta of
  /// each, one a line. A run whose folder is removed has still spent them.
  std::filesystem::path begun_file(std::size_t run) const;
  /// Notes in begun_file() that a run starts, began or resumes. Called in the run's process before
  /// its first step. The line of a run that starts says so until the run has its folder, so that a
  /// start that failed before does not count.
  void note_begun(std::size_t run, RunEvent event) const;
  void make_folder();
  void report(std::size_t run) const;

  SweepRequest request_;
  Reporter& reporter_;
  std::vector<SweepCell> cells_;
  std::vector<ScheduledRun> runs_;
  std::filesystem::path folder_;
  int at_once_ = 1;  ///< runs at a time
  SharedData data_;
  std::map<std::size_t, PlannedSpending> planned_;  ///< by cell
};

}  // namespace cudp
