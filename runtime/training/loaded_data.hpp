#pragma once
#include <memory>
#include <string>

#include "privacy/memo.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Data set, and cache of accountant results, that several trainings of this process share. Keys,
/// noisy numbers and ledgers are not shared: each run has its own.
struct LoadedData {
  DataSplit data;
  bool has_features = false;  ///< whether make_features() has been applied to the examples
  std::shared_ptr<privacy::AccountantMemo> memo;
};

/// Data in memory that a training uses instead of reading files; stored in TrainConfig::of. A
/// config read from a file has none.
struct DataInUse {
  std::shared_ptr<LoadedData> loaded;
  /// If true, the training moves the data out of `loaded`, because no other training of this
  /// process needs them. If false, it copies them.
  bool takes = false;
};

/// Cache of accountant results that trainings of this process share although each reads its own
/// data; stored in TrainConfig::of. Null: each training has a cache of its own.
struct MemoInUse {
  std::shared_ptr<privacy::AccountantMemo> memo;
};

/// Returns a new cache of accountant results, to be shared by several trainings.
std::shared_ptr<privacy::AccountantMemo> memo_for_trainings();

/// Returns a text of all settings that determine which data are read. Trainings whose texts are
/// equal can share their data. "" if the data cannot be shared, because each run chooses held-out
/// rows with a random key of its own (the split key); with the same split key from KeysInUse they
/// can.
std::string loading_key(const TrainConfig& config);

/// Reads the data for all trainings whose loading_key() is that of `config`. If they train on the
/// CPU, also computes the features. Throws InputError.
std::shared_ptr<LoadedData> load_for_trainings(const TrainConfig& config, Reporter& reporter);

}  // namespace cudp
