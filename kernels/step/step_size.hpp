#pragma once
// Step sizes that decrease with the gradients released so far: b^2 <- b^2 + max(beta_t |g~|^2, nu),
// and the step's learning rate is divided by b (AdaGrad-norm; Wu et al. 2021, section 6).
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/step_cursor.hpp"

namespace cudp {

/// Returns b^2 after a step whose released gradient has this squared norm.
CUDP_HD double grown_step_size_sum(const StepSizeSettings& s, std::uint64_t step, double sum,
                                   double squared_norm) {
  double beta = s.weight / static_cast<double>(1 + step % s.period);
  if (beta < 1.0) beta = 1.0;
  const double growth = beta * squared_norm;
  return sum + (growth > s.min_growth ? growth : s.min_growth);
}

/// Computes parts[k] = sum of g~^2 over the numbers of block k, g~ = released / expected batch. The
/// numbers of a block depend only on the launch shape, and so does the order of additions. Writes
/// no parts if the step's update is not outstanding or one of its numbers is not released. Records
/// in the cursor (`tail`) whether it did.
struct ReleasedNorm {
  const float* released;  ///< [n]
  std::int64_t n;
  const double* sum;   ///< b^2, copied to the cursor
  StepCursor* cursor;  ///< its scalars are those of the step
  double* parts;       ///< [blocks of the launch]
};
inline void validate(const ReleasedNorm& a) {
  expect(a.released && a.n > 0 && a.sum && a.cursor && a.parts,
         "norm: expected pointers and n > 0");
}
/// Launch shape with at most 512 blocks: a warp of the update then reads all parts in 16 rounds.
inline LaunchShape released_norm_shape(std::int64_t n) {
  LaunchShape shape = strided_shape(n, 256);
  if (shape.grid.x > 512) shape.grid.x = 512;
  return shape;
}
inline LaunchShape launch_shape(const ReleasedNorm& a) { return released_norm_shape(a.n); }

/// Data that an update needs to divide its learning rate by b: all parts of the norm. Without a
/// cursor the learning rate is not divided.
struct AdaptStepSize {
  StepSizeSettings settings;
  const double* parts = nullptr;
  int count = 0;
  double* sum = nullptr;         ///< b^2, written
  StepCursor* cursor = nullptr;  ///< cursor; receives used_rate, and its update is marked as done
};

inline void validate(const AdaptStepSize& a) {
  expect(a.parts && a.count > 0 && a.sum && a.cursor, "step size: expected pointers and parts");
  expect(a.settings.period > 0 && a.settings.min_growth > 0 && a.settings.weight >= 0,
         "step size: expected period > 0, min_growth > 0 and weight >= 0");
}

}  // namespace cudp
