#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/base/random_key.hpp"

namespace cudp {

/// Noisy number of examples that several trainings share, because they are parts of one larger
/// mechanism, such as a tuning. It is released, and charged, only once.
struct CountInUse {
  /// Division of the larger mechanism's budget between this noisy number and everything else.
  privacy::CountSplit budget;
  SharedKey key;                ///< random key from which the noise on the number is drawn
  std::optional<double> value;  ///< the noisy number; nullopt if it has not been released yet
};

/// Random keys for a training that is part of a larger mechanism, such as a tuning; the caller
/// stores them in the training's TrainConfig. A config from a file has none, and the training makes
/// its own keys. The caller must never use one key for two trainings on different data, because the
/// same noise on two sums would reveal their difference.
struct KeysInUse {
  std::optional<SharedKey> key;
  /// Key that decides which rows are held out for testing; used only if rows are held out. Empty:
  /// the training makes its own.
  std::optional<SharedKey> split_key;
  /// Noisy number of examples that several trainings share. Used only if the number of examples is
  /// private and has its own part of the budget (MethodEntry::counts_in_its_proof is false).
  std::optional<CountInUse> count;
};

}  // namespace cudp
