#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"

namespace cudp {

class ReleaseObserver;  // runtime/gate/release_observer.hpp

/// Proof that a run's random key is derived from a seed (--seed): an object can be constructed only
/// for such a run. Anyone who guesses the seed can compute the key, so the model of the run must
/// not be released. An observer may therefore receive the run's sums before noise
/// (runtime/gate/release_observer.hpp).
class SeededKey {
 public:
  /// Throws InputError if the config has no --seed, so that the run's key is random.
  explicit SeededKey(const TrainConfig& config);

  std::int64_t seed() const { return seed_; }

 private:
  std::int64_t seed_;
};

/// Throws InputError if the release observer is a SecretObserver, which receives secrets such as
/// sums before noise, and the config has no --seed. A model that was trained without a seed may be
/// released, so no observer may receive its secrets. release_observer: may be null.
void check_release_observer(const ReleaseObserver* release_observer, const TrainConfig& config);

}  // namespace cudp
