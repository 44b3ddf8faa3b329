#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"

namespace cudp {

class ReleaseObserver;  // runtime/gate/release_observer.hpp

/// Proof that the random key of a run is derived from a seed. Anyone who guesses the seed has the
/// key, so the run is not for release and its sums before noise may be written down
/// (runtime/gate/release_observer.hpp).
class SeededKey {
 public:
  /// Throws InputError if the config has no --seed.
  explicit SeededKey(const TrainConfig& config);

  std::int64_t seed() const { return seed_; }

 private:
  std::int64_t seed_;
};

/// Keeps observers, which see secrets, away from runs for release: throws InputError if the release
/// observer is an observer and the config has no --seed.
void check_release_observer(const ReleaseObserver* release_observer, const TrainConfig& config);

}  // namespace cudp
