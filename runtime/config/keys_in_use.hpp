#pragma once
#include <optional>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Random keys that a caller gives to a training which is part of a larger mechanism, such as a
/// tuning; stored in TrainConfig::of. A config that is read from a file has none: then the training
/// makes its own keys. The caller must never give one key to
/// two trainings on different data, because the same noise on two sums would reveal their
/// difference.
struct KeysInUse {
  std::optional<SharedKey> key;
  std::optional<SharedKey> split_key;  ///< see Experiment; used if rows are held out
};

}  // namespace cudp
