#pragma once
// Release of the sum of a step: noise is drawn and added, and the result is public.
#include <cstdint>

#include "kernels/random/random.hpp"

namespace cudp {

/// Release of a sum of clipped gradients: released[j] = grid (S_j + K_j), with S_j = sum[where[j]]
/// and K_j = rounded normal number j of `noise` with s = noise_std / grid
/// (random/rounded_normal.hpp), all integers modulo 2^64. It equals the output S + noise_std Z of
/// the continuous Gaussian mechanism, rounded to the grid.
struct ReleaseSum {
  const std::int64_t* sum;    ///< sum in units of the grid, in the engine's own order
  const std::int32_t* where;  ///< [d], position of parameter j in sum; null: the same order
  double grid;                ///< a power of two
  float noise_std;            ///< 0 for no noise; otherwise 2^16 to 2^40 units
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
