#pragma once
// Adaptive step size (AdaGrad-norm; Wu et al. 2021, section 6). The learning rate of a step is
// divided by b. b^2 starts at a positive number and grows at step t by max(beta_t |g~|^2, nu), with
// g~ the released mean gradient, and beta_t and nu as in StepSizeSettings.
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/step_cursor.hpp"

namespace cudp {

/// Returns b^2 after step `step`, where b is the number by which the adaptive step size divides the
/// learning rate. sum: b^2 before the step. squared_norm: |g~|^2 of the step's released mean
/// gradient g~.
CUDP_HD double grown_step_size_sum(const StepSizeSettings& s, std::uint64_t step, double sum,
                                   double squared_norm) {
  double beta = s.weight / static_cast<double>(1 + step % s.period);
  if (beta < 1.0) beta = 1.0;
  const double growth = beta * squared_norm;
  return sum + (growth > s.min_growth ? growth : s.min_growth);
}

/// Computes the squared norm of the released mean gradient g~ = released / (expected batch size),
/// as one partial sum per thread block: parts[k] is the sum of g~_j^2 over the coordinates j that
/// block k reads. The update kernel later adds the parts. Which coordinates a block reads, and the
/// order of additions, depend on the launch shape only. Writes no parts if the whole gradient is
/// not released yet, or if the parameters are already updated in this step. Sets
/// StepCursor::may_update to 1 if it wrote the parts, else to 0.
struct ReleasedNorm {
  const float* released;  ///< [n], released sum
  std::int64_t n;
  const double* sum;   ///< b^2 (StepSizeSettings) before the step, copied to cursor->step_size_sum
  StepCursor* cursor;  ///< progress of the run; its scalars are those of the step
  double* parts;       ///< [blocks of the launch], written: partial sums
};
inline void validate(const ReleasedNorm& a) {
  expect(a.released && a.n > 0 && a.sum && a.cursor && a.parts,
         "norm: expected pointers and n > 0");
}
/// Returns a launch shape for a gradient with n numbers: at most 512 blocks. Each block writes one
/// partial sum of the squared norm. The update kernel adds them with a single warp, which reads up
/// to 32 of them at a time, so at most 16 times.
inline LaunchShape released_norm_shape(std::int64_t n) {
  LaunchShape shape = strided_shape(n, 256);
  if (shape.grid.x > 512) shape.grid.x = 512;
  return shape;
}
inline LaunchShape launch_shape(const ReleasedNorm& a) { return released_norm_shape(a.n); }

/// Arguments with which an optimizer step divides its learning rate by b (adaptive step size).
/// parts [count]: partial sums that add up to the squared norm of the released mean gradient; they
/// are those that ReleasedNorm writes. If cursor is null, the learning rate is not divided.
struct AdaptStepSize {
  StepSizeSettings settings;
  const double* parts = nullptr;
  int count = 0;
  double* sum = nullptr;  ///< b^2 (StepSizeSettings) after the step, written
  /// Progress of the run, in device memory. The kernel writes the learning rate that it used to
  /// used_rate, and marks the step's update as done.
  StepCursor* cursor = nullptr;
};

inline void validate(const AdaptStepSize& a) {
  expect(a.parts && a.count > 0 && a.sum && a.cursor, "step size: expected pointers and parts");
  expect(a.settings.period > 0 && a.settings.min_growth > 0 && a.settings.weight >= 0,
         "step size: expected period > 0, min_growth > 0 and weight >= 0");
}

}  // namespace cudp
