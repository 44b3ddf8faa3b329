#pragma once
// Rule by which the clipping norm C follows a quantile gamma of the norms of the gradients (Andrew
// et al. 2021, Algorithm 1). After step t,
//   C_{t+1} = C_t exp(-eta (count / b + 1/2 - gamma)), clamped to public bounds,
// with eta a learning rate and b the expected batch size. count is the noisy sum over the batch of
// b_i - 1/2, with b_i = 1 if gradient i was not clipped, else 0. Host and device compute the rule
// to the same bits: there is no product that a compiler could fuse with a sum, and the exponential
// uses only operations that are rounded alike everywhere.
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// Parameters of the adaptive clipping norm C, which follows a noisy count of the gradients that
/// are not clipped. All are public.
struct ClipRule {
  /// gamma, the fraction of gradients that the clipping norm should leave unclipped, in (0, 1).
  double target = 0.5;
  double rate = 0.2;       ///< eta > 0, learning rate of log C
  double min_clip = 1e-3;  ///< smallest and largest clipping norm, 0 < min_clip <= max_clip < 2^127
  double max_clip = 1e3;
  double expected_batch = 1.0;  ///< b, expected batch size; > 0
  /// Power of two, 2^-40 to 1/2, to whose multiples the noise on the count is rounded; the noisy
  /// count is therefore a multiple of it.
  double grid = 0.5;
  /// Noise multiplier >= 0: the noise on the sum of gradients has the standard deviation
  /// noise_multiplier * clipping norm * sensitivity.
  double noise_multiplier = 1;
  /// Largest change of the rounded sum of gradients by adding or removing one example, as a
  /// multiple of the clipping norm.
  double sensitivity = 1.0;
  /// Whether the mean gradient is divided by the clipping norm (by way of
  /// StepScalars::inverse_batch), so that updates do not grow with that norm.
  bool normalised = false;
};

/// Throws std::invalid_argument if a member of r is out of range.
inline void validate(const ClipRule& r) {
  if (!(r.target > 0 && r.target < 1 && r.rate > 0 && r.min_clip > 0 && r.min_clip <= r.max_clip &&
        r.max_clip < 0x1p127 && r.expected_batch > 0 && r.noise_multiplier >= 0 &&
        r.sensitivity > 0))
    throw std::invalid_argument("clip rule: a number is out of range");
  if (!(r.grid >= 0x1p-40 && r.grid <= 0.5 && std::ldexp(1.0, std::ilogb(r.grid)) == r.grid))
    throw std::invalid_argument("clip rule: expected a power of two of 2^-40 to 1/2 for a grid");
}

/// Returns 2^e for e in -1022..1023.
CUDP_HD double power_of_two(int e) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double(static_cast<long long>(e + 1023) << 52);
#else
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
#endif
}

/// Returns the floor of log2 x. Requires a normal number x > 0.
CUDP_HD int floor_log2(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<int>(__double_as_longlong(x) >> 52) - 1023;
#else
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023;
#endif
}

/// Returns the grid for a sum of vectors with L2 norm up to max_norm: the power of two to whose
/// multiples each number is rounded before it is added, 2^-20 times the largest power of two <=
/// max_norm. Equals sum_grid(max_norm), but gives identical bits on the host and a device. Requires
/// max_norm >= 2^-1000.
CUDP_HD double sum_grid_of(double max_norm) { return power_of_two(floor_log2(max_norm) - 20); }

/// Returns e^x to within an ulp (the distance between neighbouring doubles), with identical bits on
/// the host and a device. x is first clamped to [-700, 700].
CUDP_HD double same_exp(double x) {
  const double held = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
  const double k = rint(held * 0x1.71547652b82fep+0);  // 1 / ln 2
  // ln 2 is split into two parts; k times the first is exact.
  double r = fma(-k, 0x1.62e42fee00000p-1, held);
  r = fma(-k, 0x1.a39ef35793c76p-33, r);
  double e = 1.0 / 6227020800.0;  // 1 / 13!, and so on
  e = fma(e, r, 1.0 / 479001600.0);
  e = fma(e, r, 1.0 / 39916800.0);
  e = fma(e, r, 1.0 / 3628800.0);
  e = fma(e, r, 1.0 / 362880.0);
  e = fma(e, r, 1.0 / 40320.0);
  e = fma(e, r, 1.0 / 5040.0);
  e = fma(e, r, 1.0 / 720.0);
  e = fma(e, r, 1.0 / 120.0);
  e = fma(e, r, 1.0 / 24.0);
  e = fma(e, r, 1.0 / 6.0);
  e = fma(e, r, 0.5);
  e = fma(e, r, 1.0);
  e = fma(e, r, 1.0);
  return e * power_of_two(static_cast<int>(k));
}

/// Returns x, rounded up to a float. Requires x > 0 in the range of normal floats.
CUDP_HD float float_not_below(double x) {
  const auto f = static_cast<float>(x);
  if (!(static_cast<double>(f) < x)) return f;
#ifdef __CUDA_ARCH__
  return __int_as_float(__float_as_int(f) + 1);
#else
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(f) + 1);
#endif
}

/// Returns the clipping norm of the next step. clip: clipping norm of the current step.
/// noisy_count: the current step's noisy count of gradients that were not clipped, as a multiple of
/// r.grid.
CUDP_HD float next_clip(const ClipRule& r, float clip, std::int64_t noisy_count) {
  const double count = r.grid * static_cast<double>(static_cast<long long>(noisy_count));
  const double share = count / r.expected_batch + 0.5;
  const double next = static_cast<double>(clip) * same_exp(-(r.rate * (share - r.target)));
  return static_cast<float>(next < r.min_clip ? r.min_clip : next > r.max_clip ? r.max_clip : next);
}

/// Returns the scalars s of a step, changed for the clipping norm `clip`: the noise grows with it
/// and, if r.normalised, the mean gradient is divided by it. r: settings of the adaptive clipping
/// norm.
CUDP_HD StepScalars scalars_at(const ClipRule& r, float clip, StepScalars s) {
  s.noise_std = float_not_below(r.noise_multiplier * static_cast<double>(clip) * r.sensitivity);
  if (r.normalised) s.inverse_batch = s.inverse_batch / clip;
  s.clip_norm = clip;
  return s;
}

/// Returns the clipping norm `clip` of a step together with the grid that follows from it: the
/// power of two to whose multiples every number is rounded before it is added to the step's sum.
CUDP_HD SumScale scale_at(float clip) {
  const double grid = sum_grid_of(static_cast<double>(clip));
  return {clip, static_cast<float>(1.0 / grid), grid};
}

/// Adds noise to the count of gradients that were not clipped, and returns the sum as a multiple of
/// r.grid. The count is relative to half of the batch: the sum over its examples of b - 1/2, with b
/// = 1 if the example's gradient was not clipped, else 0. halves: twice that sum. noise: also as a
/// multiple of r.grid. Arithmetic is modulo 2^64, as for every value that is released.
CUDP_HD std::int64_t noisy_count_of(const ClipRule& r, std::uint64_t halves, std::int64_t noise) {
  const auto units_of_half =
      static_cast<std::uint64_t>(static_cast<unsigned long long>(0.5 / r.grid));
  return static_cast<std::int64_t>(halves * units_of_half + static_cast<std::uint64_t>(noise));
}

/// Returns the argument `halves` of noisy_count_of(): twice the sum over a batch's examples of b -
/// 1/2, modulo 2^64, with b = 1 if the example's gradient was not clipped, else 0. `clipped` of the
/// `examples` gradients were clipped, and `non_finite` were not finite, which counts as clipped.
CUDP_HD std::uint64_t halves_of(std::uint64_t examples, std::uint64_t clipped,
                                std::uint64_t non_finite) {
  return examples - 2 * (clipped + non_finite);
}

}  // namespace cudp
