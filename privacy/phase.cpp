#include "privacy/phase.hpp"

#include <limits>
#include <stdexcept>

#include "privacy/text/number.hpp"

namespace cudp::privacy {

void check(const Phase& phase) {
  if (!(phase.q >= 0.0 && phase.q <= 1.0))
    throw std::invalid_argument("q: expected a sampling rate in [0, 1], found " + number(phase.q));
  if (!(phase.sigma > 0.0 && phase.sigma < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("sigma: expected a finite noise multiplier > 0, found " +
                                number(phase.sigma));
}

}  // namespace cudp::privacy
