#pragma once
#include <memory>
#include <string>

#include "privacy/memo.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// A data set in memory, and a cache of results of the privacy accountant, shared by several
/// trainings of this process. Each training has its own random key, noisy values and ledger.
struct LoadedData {
  DataSplit data;
  bool has_features = false;  ///< whether make_features() has been applied to the examples
  std::shared_ptr<privacy::AccountantMemo> memo;
};

/// Data in memory that a training uses instead of reading files. A part of the training's config in
/// memory, never of a config file. The member `loaded` is null if the training reads files.
struct DataInUse {
  std::shared_ptr<LoadedData> loaded;
  /// Whether the training moves the data out of `loaded` instead of copying them. Requires that no
  /// other training of this process needs them, unless the caller moves them back.
  bool takes = false;
};

/// Cache of results of the privacy accountant, shared by trainings of this process that each read
/// their own data. A part of the training's config in memory. If the member `memo` is null, each
/// training has a cache of its own.
struct MemoInUse {
  std::shared_ptr<privacy::AccountantMemo> memo;
};

/// Returns a new, empty cache of results of the privacy accountant, to be shared by several
/// trainings.
std::shared_ptr<privacy::AccountantMemo> memo_for_trainings();

/// Returns a text of all settings that determine which data are read. Trainings with equal texts
/// can share their data. Returns "" if data cannot be shared: rows are held out, and each training
/// decides with a random key of its own which ones. The caller can avoid this by giving all
/// trainings the same key (KeysInUse).
std::string loading_key(const TrainConfig& config);

/// Reads the data for all trainings whose settings have the same loading_key() as `config`. If they
/// train on the CPU, also computes the features. Throws InputError if the data cannot be read.
std::shared_ptr<LoadedData> load_for_trainings(const TrainConfig& config, Reporter& reporter);

}  // namespace cudp
