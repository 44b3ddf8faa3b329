#include "kernels/contribution/contribution.hpp"

#include <stdexcept>

namespace cudp {

void validate(const CoordinateSettings& c) {
  if (!(c.beta1 >= 0 && c.beta1 <= 1 && c.beta2 >= 0 && c.beta2 <= 1))
    throw std::invalid_argument("coordinates: expected beta1 and beta2 in [0, 1]");
  if (!(c.min_variance > 0 && c.min_variance <= c.max_variance && c.max_variance < 1e30f))
    throw std::invalid_argument("coordinates: expected 0 < h1 <= h2, finite");
}

void validate(const ImportanceRule& r) {
  if (!(r.clip > 0 && r.multiple >= 1 && r.min_norm > 0 && r.rate > 0 && r.clip * r.rate < 1))
    throw std::invalid_argument(
        "accept: expected a rule with clip, min_norm, rate > 0, multiple >= 1, clip rate < 1");
}

}  // namespace cudp
