#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"

namespace cudp {

/// The proof that a run's random key follows from a seed: whoever guesses that has the key, so the
/// run is not for release and hides nothing (runtime/gate/witness.hpp).
class SeededKey {
 public:
  /// Throws InputError where the config has no --seed.
  explicit SeededKey(const TrainConfig& config);

  std::int64_t seed() const { return seed_; }

 private:
  std::int64_t seed_;
};

}  // namespace cudp
