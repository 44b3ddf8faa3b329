#pragma once
// The release of a sum of clipped gradients on a device; ReleaseSum of update.hpp says what it is.
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/step/update.hpp"

namespace cudp {

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
