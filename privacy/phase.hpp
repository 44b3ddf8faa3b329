#pragma once
#include <cstdint>

namespace cudp::privacy {

/// `steps` releases of the Poisson-subsampled Gaussian mechanism. q = 1 is the plain Gaussian.
struct Phase {
  double q = 0.0;      ///< sampling rate, in [0, 1]
  double sigma = 0.0;  ///< noise multiplier: noise std / L2 sensitivity; finite and > 0
  std::uint64_t steps = 0;

  bool operator==(const Phase&) const = default;
};

/// A differential-privacy statement, and the Renyi order that gave it.
struct Guarantee {
  double epsilon = 0.0;
  double delta = 0.0;
  double order = 0.0;  ///< 0 where nothing was released and no order was needed
};

/// Throws std::invalid_argument, with the value, unless q and sigma are in their ranges.
void check(const Phase& phase);

}  // namespace cudp::privacy
