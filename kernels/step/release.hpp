#pragma once
// The release of the sum of a step: noise is drawn and added, and what was private before is
// public.
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/step/recipe.hpp"

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

// --- CUDA ---

/// A pair of rounded normals that double cannot decide, as the host made it beforehand.
struct HostPair {
  std::uint64_t step;
  std::uint32_t pair;
  std::uint32_t words[4];  ///< its first ones
  RoundedPair k;
};

/// Lists the pairs of steps first .. first + steps - 1 that double cannot decide, with noise_std of
/// `scalars` [steps]; numbers 0 .. n - 1 of each.
struct ListUndecided {
  RandomStream noise;
  std::uint64_t first;
  const StepScalars* scalars;
  std::int64_t steps;
  std::int64_t n;
  double grid;
  HostPair* list;        ///< [capacity], without k, in any order
  std::uint32_t* count;  ///< [1], 0 before; how many there are, listed or not
  std::uint32_t capacity;
};

/// released[j] = grid (sum[j] + K_j) and sum[j] = 0, K_j of the present step.
struct ReleaseFixed {
  FixedPoint* sum;
  double grid;
  RandomStream noise;
  const std::uint64_t* step;   ///< [1], the present one
  const StepScalars* scalars;  ///< [1], its noise_std
  const HostPair* pairs;       ///< [*pair_count], with every undecided pair of the step
  const std::uint32_t* pair_count;
  std::int64_t n;
  float* released;  ///< [n]
};

inline void validate(const ListUndecided& a) {
  expect(a.scalars && a.list && a.count && a.steps > 0 && a.n > 0 && a.grid > 0,
         "undecided noise: expected pointers, steps, n > 0 and a grid");
}
inline void validate(const ReleaseFixed& a) {
  expect(a.sum && a.step && a.scalars && a.pairs && a.pair_count && a.released && a.n > 0 &&
             a.grid > 0,
         "release: expected pointers, n > 0 and a grid");
}
/// A thread a generator block of 8 numbers; small blocks, so that small models fill the device.
inline LaunchShape release_shape(std::int64_t n) { return strided_shape((n + 127) / 128 * 16, 64); }
inline LaunchShape launch_shape(const ListUndecided& a) { return release_shape(a.n); }
inline LaunchShape launch_shape(const ReleaseFixed& a) { return release_shape(a.n); }

}  // namespace cudp
