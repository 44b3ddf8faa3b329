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
#include "runtime/training/loaded_data.hpp"

namespace cudp {

/// Planned privacy cost of a training of a sweep or tuning.
struct PlannedSpending {
  double epsilon = 0.0;  ///< infinite without privacy
  double delta = 0.0;
  /// Text of the certificate of the plan, or of the run if it has begun; "" without privacy, or if
  /// the plan depends on a noisy number of examples that is not released yet.
  std::string certificate;
  /// Keyed hash of the data (data_tag_of()), if the config has a key in KeysInUse; otherwise "".
  std::string data_tag = {};
};

/// Public facts about the data of a training, from its schema.
struct DataFacts {
  std::string name;             ///< name of the data set
  std::string schema;           ///< text of the schema; "" if there is none
  std::string unit;             ///< column that is the unit of privacy; "" if each row is a unit
  std::uint64_t unit_rows = 1;  ///< maximum number of rows of a unit
  std::string protected_unit;   ///< description of the unit for budget files, from protected_unit()
};

/// Data in memory, and results of the accountant, that trainings of this process and of its child
/// processes share.
class SharedData {
 public:
  /// Reads the data of trainings with these settings, unless they are in memory already or cannot
  /// be shared. Throws InputError.
  void load(const TrainConfig& config, Reporter& reporter);
  /// Returns the data in memory that a training with this config can use; null if there are none.
  std::shared_ptr<LoadedData> of(const TrainConfig& config) const;
  /// Returns the config with the data in memory, if there are any for it. takes: whether the
  /// training moves them out of memory instead of copying them (DataInUse).
  TrainConfig with_shared_data(TrainConfig config, bool takes) const;
  /// Returns facts about the data of a training with this config, whether they are in memory or
  /// not. Throws InputError.
  DataFacts facts(const TrainConfig& config) const;
  /// Returns the privacy cost of a training with each of these configs. Draws no noise and writes
  /// nothing. Reports the notes and warnings of the first. If a training would fail before its
  /// first release, throws its error.
  std::vector<PlannedSpending> plan(const std::vector<TrainConfig>& configs,
                                    Reporter& reporter) const;

 private:
  std::map<std::string, std::shared_ptr<LoadedData>> loaded_;  ///< by loading_key
};

/// Returns whether a training with this config may run on a CUDA device.
bool may_use_cuda(const TrainConfig& config);

/// Returns the number of trainings to run at a time, at least 1. asked: number that the user set;
/// if 0, as many as the cores allow, at most 8 on a CUDA device.
int trainings_at_once(const std::vector<TrainConfig>& configs, std::int64_t asked);

/// Trains in the folder config.out, or continues the run in it. Called in a child process.
void train_in_child(const TrainConfig& config, const QueuedSignals& signals);

/// Returns whether a run has ended, i.e. has a result or was refused after its noisy number of
/// examples was released.
bool has_ended(const RunFolder& folder);
/// Returns the status of a run's certificate; "" if there is none.
std::string certified_status(const RunFolder& folder);

/// Locks the folder of a sweep or a tuning. If a call was killed, its runs in progress still hold
/// the lock until they have stored a checkpoint; this waits for them. Throws Error if that takes
/// too long.
FolderLock lock_of_runs(const std::filesystem::path& folder, Reporter& reporter);

/// Functions that train_all() calls to make numbered trainings in child processes. `train` is
/// called in the child.
struct ChildWork {
  std::function<void(std::size_t number, const QueuedSignals&)> train;
  /// Returns whether the training has ended (finished or refused). The exit code of its child
  /// process may be any.
  std::function<bool(std::size_t number)> is_over;
  /// Called in this process for each training that has ended.
  std::function<void(std::size_t number)> report;
};

/// Outcome of trainings in child processes.
struct EndOfTrainings {
  bool interrupted = false;
  Exit code = Exit::ok;    ///< exit code of the first training that failed
  std::size_t failed = 0;  ///< number of that training
  std::string message;     ///< error message of that training
};

/// Makes the trainings with these numbers in child processes, at most `at_once` at a time. After a
/// signal or a failure, the trainings in progress are ended with a checkpoint. end: handles signals
/// until the first child starts and after the last one has ended. In between it does not exist,
/// because its thread must not live while processes are forked.
EndOfTrainings train_all(const std::vector<std::size_t>& numbers, int at_once,
                         const ChildWork& work, std::optional<EndOnSignal>& end);

}  // namespace cudp
