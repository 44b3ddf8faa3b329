#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"

namespace cudp {

class Witness;  // runtime/gate/witness.hpp

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

/// Keeps observers, who see secrets, away from runs for release: throws InputError where the
/// witness is one and the config has no --seed.
void check_witness(const Witness* witness, const TrainConfig& config);

}  // namespace cudp
