#pragma once
// The release of the sum of a step: noise is drawn and added, and what was private before is
// public.
#include <cstdint>

#include "kernels/random/random.hpp"

namespace cudp {

/// The release of a sum of clipped gradients: released[j] = grid (S_j + K_j), S_j = sum[where[j]],
/// K_j rounded normal number j of `noise` with s = noise_std / grid (random/rounded_normal.hpp),
/// all integers modulo 2^64. It is the continuous Gaussian mechanism's output S + noise_std Z,
/// rounded to the grid.
struct ReleaseSum {
  const std::int64_t* sum;    ///< in units of the grid, in the engine's own order
  const std::int32_t* where;  ///< [d], position of parameter j in sum; null: the same order
  double grid;                ///< a power of two
  float noise_std;            ///< 0 for none; else in 2^16 to 2^40 units
  RandomStream noise;
  std::int64_t begin;  ///< first parameter, a multiple of 256
  std::int64_t end;    ///< one past the last
  float* released;     ///< [d], rounded to float
};

/// Throws std::invalid_argument unless noise_std is 0 or 2^16 to 2^40 units.
void check_noise(double grid, float noise_std);
/// Throws std::invalid_argument naming the member that is missing or out of range.
void validate(const ReleaseSum& args);

}  // namespace cudp
