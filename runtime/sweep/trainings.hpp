#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/sweep/shared_bounds.hpp"
#include "runtime/training/loaded_data.hpp"

namespace cudp {

/// Planned privacy cost of a training of a sweep or tuning.
struct PlannedSpending {
  double epsilon = 0.0;  ///< infinite without privacy
  double delta = 0.0;
  /// Text (JSON) of the certificate that states the planned cost, or of the run's own certificate
  /// if the run has begun. "" without privacy, or if the plan depends on a noisy number of examples
  /// that is not released yet.
  std::string certificate;
  /// Keyed hash of the training's data, with a key that the caller has chosen for it (KeysInUse);
  /// "" without such a key.
  std::string data_tag = {};
};

/// Public properties of the data set of a training: its name, its schema, and its unit of privacy.
struct DataFacts {
  std::string name;             ///< name of the data set
  std::string schema;           ///< text of the schema; "" if there is none
  std::string unit;             ///< column that is the unit of privacy; "" if each row is a unit
  std::uint64_t unit_rows = 1;  ///< maximum number of rows of a unit
  std::string protected_unit;   ///< description of the unit for budget files, from protected_unit()
};

/// Data sets in memory, and results of the privacy accountant, that the trainings of a sweep or a
/// tuning share: those in this process and in its child processes.
class SharedData {
 public:
  /// While this object exists, this process and the processes that it forks share the bounds that
  /// their accountants compute (SharedBounds). Does nothing if there is a store of bounds already.
  /// Requires that no other thread uses an accountant while the constructor or the destructor runs.
  SharedData();
  ~SharedData();
  SharedData(const SharedData&) = delete;
  SharedData& operator=(const SharedData&) = delete;
  SharedData(SharedData&&) = delete;
  SharedData& operator=(SharedData&&) = delete;

  /// Reads the data of trainings with these settings into memory, unless they are there already or
  /// cannot be shared between trainings. Throws InputError if the data cannot be read.
  void load(const TrainConfig& config, Reporter& reporter);
  /// Returns the data in memory that a training with this config can use; null if there are none.
  std::shared_ptr<LoadedData> of(const TrainConfig& config) const;
  /// Returns the config, changed so that the training uses the data in memory, if these have been
  /// loaded for such a training. takes: whether the training moves them out of memory instead of
  /// copying them (DataInUse).
  TrainConfig with_shared_data(TrainConfig config, bool takes) const;
  /// Returns the public properties of the data of a training with this config, whether the data are
  /// in memory or not. Throws InputError if the data set or its schema cannot be read.
  DataFacts facts(const TrainConfig& config) const;
  /// Plans a training with each of the configs, and returns their privacy costs. Draws no noise and
  /// writes nothing. Reports notes and warnings about the first config only. If a training would
  /// fail before it releases anything, throws the error with which it would fail.
  std::vector<PlannedSpending> plan(const std::vector<TrainConfig>& configs,
                                    Reporter& reporter) const;

 private:
  std::map<std::string, std::shared_ptr<LoadedData>> loaded_;  ///< by loading_key()
  std::unique_ptr<SharedBounds> bounds_;                       ///< null if another store is in use
};

/// Returns whether a training with this config may run on a CUDA device.
bool may_use_cuda(const TrainConfig& config);

/// Returns how many of the trainings with these configs run at the same time, at least 1. asked:
/// the number that the user set; 0 to choose it: the number of CPU cores divided by the number of
/// threads per training, but at most 8 if a training may use a CUDA device.
int trainings_at_once(const std::vector<TrainConfig>& configs, std::int64_t asked);

/// What happens to a run before its first step.
enum class RunEvent {
  starts,  ///< nothing was released yet, and the run has no folder
  /// The run's folder is about to appear. The run counts from now on, even if the process is killed
  /// before it appears. It may have been refused after its noisy number of examples.
  begins,
  resumes,  ///< the folder of an earlier call is continued
};

/// Makes a training in the folder config.out, or resumes the run that is already there. Called in a
/// child process. signals: queue of the signals that arrive before the training has its own
/// handlers. observe: called for each RunEvent; may be empty.
void train_in_child(const TrainConfig& config, const QueuedSignals& signals,
                    const std::function<void(RunEvent)>& observe = {});

/// Returns whether the run in this folder has ended: it has a result, or it released the noisy
/// number of its examples and then found that its budget does not suffice to train.
bool has_ended(const RunFolder& folder);
/// Returns the status that a run's certificate states, such as finished; "" if there is no
/// certificate.
std::string certified_status(const RunFolder& folder);

/// Locks the folder of a sweep or a tuning, so that no other process works in it. If an earlier
/// process was killed, its child processes hold the lock until they have stored a checkpoint; the
/// function waits for them. Throws Error if that takes too long.
FolderLock lock_of_runs(const std::filesystem::path& folder, Reporter& reporter);

/// Functions that train_all() calls for the trainings that it makes in child processes. A training
/// is identified by a number that the caller of train_all() chooses. `train` makes the training; it
/// is called in the child process.
struct ChildWork {
  std::function<void(std::size_t number, const QueuedSignals&)> train;
  /// Returns whether the training has ended: it is finished, or its budget does not suffice to
  /// train. Called after the training's child process has exited, with whatever exit code.
  std::function<bool(std::size_t number)> is_over;
  /// Called in the parent process for each training that has ended, e.g. to print its result.
  std::function<void(std::size_t number)> report;
};

/// Outcome of train_all(): whether a signal interrupted it, and the first training that failed.
struct EndOfTrainings {
  bool interrupted = false;
  Exit code = Exit::ok;    ///< exit code of the first training that failed
  std::size_t failed = 0;  ///< number of that training
  std::string message;     ///< error message of that training
};

/// Makes trainings in child processes, at most `at_once` at the same time. numbers: one number for
/// each training, which is passed to the functions of `work`. After a signal or a failure, starts
/// no more trainings, and stops those in progress with a checkpoint. end: handles signals before
/// the first child starts and after the last one has ended. In between it is destroyed, because no
/// thread may exist when processes are forked.
EndOfTrainings train_all(const std::vector<std::size_t>& numbers, int at_once,
                         const ChildWork& work, std::optional<EndOnSignal>& end);

}  // namespace cudp
