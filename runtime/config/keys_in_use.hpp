#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/base/random_key.hpp"

namespace cudp {

/// The noisy number of examples of a larger mechanism. All of its trainings use the same one, which
/// is released and paid for once.
struct CountInUse {
  privacy::CountSplit budget;   ///< of the larger mechanism: a part is for the number
  SharedKey key;                ///< the number's noise is drawn from it
  std::optional<double> value;  ///< the number, if it has been released
};

/// Random keys that a caller gives to a training which is part of a larger mechanism, such as a
/// tuning; stored in TrainConfig::of. A config that is read from a file has none: then the training
/// makes its own keys. The caller must never give one key to
/// two trainings on different data, because the same noise on two sums would reveal their
/// difference.
struct KeysInUse {
  std::optional<SharedKey> key;
  std::optional<SharedKey> split_key;  ///< see Experiment; used if rows are held out
  /// Used if the number of examples is private and the method's proof does not count it.
  std::optional<CountInUse> count;
};

}  // namespace cudp
