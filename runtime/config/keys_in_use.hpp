#pragma once
#include <optional>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Keys of a training that is a part of a larger mechanism, in TrainConfig::of. A config that is
/// read back has none: then the training makes its own keys. The caller must never give one key to
/// two trainings on different data, because the same noise on two sums would reveal their
/// difference.
struct KeysInUse {
  std::optional<SharedKey> key;
  std::optional<SharedKey> split_key;  ///< see Experiment; used if rows are held out
};

}  // namespace cudp
