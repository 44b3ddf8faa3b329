#pragma once
// Release of a step's sum of gradients: noise is drawn and added, and the result is public.
#include <cstdint>

#include "kernels/random/random.hpp"

namespace cudp {

/// Adds noise to a sum of clipped gradients with d numbers: released[j] = grid * (S_j + K_j). S_j =
/// sum[where[j]] is the sum as an integer multiple of `grid`. K_j, the noise, is an integer: a
/// normal number with standard deviation noise_std / grid, rounded to nearest (number j of the
/// rounded normals of the stream `noise`). The arithmetic is modulo 2^64. The result equals that of
/// the continuous Gaussian mechanism, grid S + noise_std Z, rounded to a multiple of `grid`.
struct ReleaseSum {
  const std::int64_t* sum;    ///< sum in units of `grid`, in the engine's own order of parameters
  const std::int32_t* where;  ///< [d], index of parameter j in sum; null: the same order
  double grid;                ///< a power of two; the released numbers are multiples of it
  /// Standard deviation of the noise: 0 for no noise, otherwise 2^16 to 2^40 times grid.
  float noise_std;
  RandomStream noise;
  std::int64_t begin;  ///< first parameter, a multiple of 256
  std::int64_t end;    ///< one past the last parameter
  float* released;     ///< [d], rounded to float
};

/// Throws std::invalid_argument unless noise_std is 0, or 2^16 to 2^40 times grid.
void check_noise(double grid, float noise_std);
/// Throws std::invalid_argument, with the name of the member, if a member is missing or out of
/// range.
void validate(const ReleaseSum& args);

}  // namespace cudp
