#include "runtime/config/seeded_key.hpp"

#include "runtime/base/error.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

SeededKey::SeededKey(const TrainConfig& config) {
  if (!config.seed)
    throw InputError(
        "--seed: expected one, since sums before noise are written down, found none: a run for "
        "release has no transcript");
  seed_ = *config.seed;
}

void check_release_observer(const ReleaseObserver* release_observer, const TrainConfig& config) {
  if (dynamic_cast<const SecretObserver*>(release_observer) != nullptr)
    static_cast<void>(SeededKey(config));
}

}  // namespace cudp
