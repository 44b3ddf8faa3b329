#pragma once
#include <cstdint>
#include <string>

namespace cudp::privacy {

/// One kind of noisy value that the host released in addition to the sums of the steps, and the
/// number of such releases.
struct NoisyValue {
  std::string name;
  std::uint64_t times = 0;
  std::uint64_t numbers = 0;  ///< number of values in each release
  double grid = 0.0;
  double noise_std = 0.0;
  double sensitivity = 0.0;

  bool operator==(const NoisyValue&) const = default;
};

}  // namespace cudp::privacy
