#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/base/random_key.hpp"

namespace cudp {

/// Noisy number of examples that several trainings of one larger mechanism (such as a tuning)
/// share. It is released, and charged, once.
struct CountInUse {
  /// Division of the larger mechanism's budget between this noisy number and everything else.
  privacy::CountSplit budget;
  SharedKey key;                ///< random key from which the noise on the number is drawn
  std::optional<double> value;  ///< the noisy number; nullopt if it has not been released yet
};

/// Random keys that a caller gives to a training which is part of a larger mechanism, such as a
/// tuning; stored in the training's TrainConfig. A config that is read from a file has none: then
/// the training makes its own keys. The caller must never give one key to two trainings on
/// different data, because the same noise on two sums would reveal their difference.
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
