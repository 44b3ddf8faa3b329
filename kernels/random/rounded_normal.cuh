#pragma once
// Rounded normals (rounded_normal.hpp) on a device. The few pairs for which double precision cannot
// decide the rounding are left to the host; see decided_pairs (kernels/step/finish.hpp).
#include <cmath>
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/random/rounded_normal_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// Pair of rounded normals (normal random numbers rounded to integers) computed in double
/// precision, and whether their rounding is certainly correct.
struct TriedPair {
  RoundedPair k;  ///< valid only if `decided`
  bool decided;
};

/// Computes a pair of rounded normals (normal random numbers with standard deviation s, rounded to
/// integers) from the four random words word[0..3]. `decided` is false in the result if double
/// precision is not enough to be certain of the rounding. error_factor: enlarges the error bound,
/// for tests. log, sincospi and sqrt are CUDA's; the error bound includes their errors.
__device__ __forceinline__ TriedPair try_rounded_pair(const std::uint32_t* word, double s,
                                                      double error_factor = 1.0) {
  const double u1 = rounded_normal_u1(static_cast<double>(word[0]), static_cast<double>(word[1]));
  const double turn = rounded_normal_turn(static_cast<double>(static_cast<std::int32_t>(word[2])),
                                          static_cast<double>(word[3]));
  const double l = -2.0 * log(u1);
  const double r = sqrt(l);
  double circle[2];
  sincospi(turn, &circle[1], &circle[0]);
  const double error = rounded_normal_error(u1, r) * rounded_normal_spread(s, error_factor);
  bool decided = rounded_normal_bounded(l, error) != 0;
  std::int64_t k[2];
  CUDP_UNROLL for (int i = 0; i < 2; ++i) {
    const double x = s * r * circle[i];
    const double nearest = rint(x);  // finite: u1 is in [2^-65, 1]
    decided = decided && rounded_normal_decided(x, nearest, error) != 0;
    k[i] = static_cast<std::int64_t>(nearest);
  }
  return {{k[0], k[1]}, decided};
}

}  // namespace cudp::inline CUDP_SIMT
