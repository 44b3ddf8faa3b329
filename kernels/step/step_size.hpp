#pragma once
// Step sizes that fall with the gradients released so far: b^2 <- b^2 + max(beta_t |g~|^2, nu), and
// the step's learning rate is divided by b (AdaGrad-norm; Wu et al. 2021, section 6).
#include <cmath>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/step_cursor.hpp"

namespace cudp {

/// b^2 after a step whose released gradient has this squared norm.
CUDP_HD double grown_step_size_sum(const StepSizeSettings& s, std::uint64_t step, double sum,
                                   double squared_norm) {
  double beta = s.weight / static_cast<double>(1 + step % s.period);
  if (beta < 1.0) beta = 1.0;
  const double growth = beta * squared_norm;
  return sum + (growth > s.min_growth ? growth : s.min_growth);
}

/// parts[k] = sum over some of the numbers of g~^2, g~ = released / expected batch; which ones
/// depends on the launch shape alone, and so does what they add up to.
struct ReleasedNorm {
  const float* released;  ///< [n]
  std::int64_t n;
  const StepScalars* scalars;  ///< [1]
  double* parts;               ///< [blocks of the launch]
};
inline void validate(const ReleasedNorm& a) {
  expect(a.released && a.n > 0 && a.scalars && a.parts, "norm: expected pointers and n > 0");
}
inline LaunchShape launch_shape(const ReleasedNorm& a) { return strided_shape(a.n, 64); }

/// The present step's learning rate, from all the parts.
struct AdaptStepSize {
  StepSizeSettings settings;
  const double* parts;
  int count;
  double* sum;         ///< b^2
  StepCursor* cursor;  ///< its step and its scalars' learning_rate
};

inline void validate(const AdaptStepSize& a) {
  expect(a.parts && a.count > 0 && a.sum && a.cursor, "step size: expected pointers and parts");
  expect(a.settings.period > 0 && a.settings.min_growth > 0 && a.settings.weight >= 0,
         "step size: expected period > 0, least > 0 and weight >= 0");
}
inline LaunchShape launch_shape(const AdaptStepSize&) {
  return {.grid = {}, .block = {32}, .shared_bytes = 0};
}

}  // namespace cudp
