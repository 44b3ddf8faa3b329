#pragma once
#include <cstdint>
#include <string>

namespace cudp::privacy {

/// Noisy values of one kind that a run released in addition to the noisy gradient sums of its
/// steps, e.g. the number of examples.
struct NoisyValue {
  std::string name;
  std::uint64_t times = 0;    ///< number of times that a value of this kind was released
  std::uint64_t numbers = 0;  ///< number of values in each of these releases
  /// values and their noise are integer multiples of this number [unit of the value]
  double grid = 0.0;
  double noise_std = 0.0;  ///< standard deviation of the noise on each value
  double sensitivity = 0.0;

  bool operator==(const NoisyValue&) const = default;
};

}  // namespace cudp::privacy
