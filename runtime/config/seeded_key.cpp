#include "runtime/config/seeded_key.hpp"

#include "runtime/base/error.hpp"

namespace cudp {

SeededKey::SeededKey(const TrainConfig& config) {
  if (!config.seed)
    throw InputError(
        "--seed: expected one, since sums before noise are written down, found none: a run for "
        "release has no transcript");
  seed_ = *config.seed;
}

}  // namespace cudp
