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

  /// Returns the privacy cost of each run of the whole sweep: the one that its certificate states
  /// or, if it has no certificate yet, the planned one. Also returns the cost of earlier runs that
  /// have begun and whose folders were then removed. Call after prepare().
  std::vector<PlannedSpending> spendings() const;

  /// Makes all unfinished runs of this process's part of the sweep (--share), in the sweep's
  /// folder, which is created if it does not exist. If a run fails or a signal arrives, stops the
  /// other runs with a checkpoint and throws Error. end: handles signals until the first run
  /// starts; it is then destroyed, because no thread may exist when processes are forked.
  void run(std::optional<EndOnSignal>& end);

  /// Removes random keys and checkpoints of runs that are complete. A run removes them itself,
  /// unless its process was killed just before that.
  void remove_leftovers_of_runs() const;

  /// Locks the tables. Make the table and write it while the lock lives: of the tasks of an array
  /// that end together, the last one then finds the runs of all.
  FolderLock lock_of_tables() const;
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
  /// Returns the path of the file that lists the runs that have begun in the folder of run number
  /// `run`, with epsilon and delta of each, one per line. It remains if a run's folder is removed,
  /// because the privacy cost of that run remains.
  std::filesystem::path begun_file(std::size_t run) const;
  /// Records in begun_file() that a run is starting, begins or resumes. Called in the run's process
  /// before its first step. A line for a run that is starting is marked as such until just before
  /// the run's folder appears, so that a start that fails earlier does not count.
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
  std::map<std::size_t, PlannedSpending> planned_;  ///< by index of the cell
};

}  // namespace cudp
