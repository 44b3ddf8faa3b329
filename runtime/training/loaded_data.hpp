#pragma once
#include <memory>
#include <string>

#include "privacy/memo.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Data that several trainings of this process share, and the results of their accountant. Nothing
/// here is drawn by a training: keys, noisy numbers and ledgers belong to a single run.
struct LoadedData {
  DataSplit data;
  bool has_features = false;  ///< the features of each example are computed (make_features)
  std::shared_ptr<privacy::AccountantMemo> memo;
};

/// Data in memory that a training uses in place of reading them, in TrainConfig::of. A config that
/// is read back has none.
struct DataInUse {
  std::shared_ptr<LoadedData> loaded;
  /// Whether the training moves the data out of `loaded` instead of copying them: no other training
  /// of this process needs them.
  bool takes = false;
};

/// Returns a text that is the same for two configs whose trainings can share their data: all
/// settings that decide what is read. "" if the data cannot be shared, because a run's own coins
/// decide which rows are held out; trainings that were given coins (KeysInUse) have the same ones.
std::string loading_key(const TrainConfig& config);

/// Reads the data for trainings with this loading_key. On the CPU, computes their features too.
/// Throws InputError.
std::shared_ptr<LoadedData> load_for_trainings(const TrainConfig& config, Reporter& reporter);

}  // namespace cudp
