#pragma once
#include <span>
#include <string>
#include <vector>

#include "privacy/transcript/records.hpp"

namespace cudp::verify {

/// A number as an engine may have computed it in float: its value in double, and a bound on the
/// engine's rounding error. Every operation adds the error of one rounding to nearest: at most
/// 2^-24 of the result, or 2^-126 if a small result is flushed to 0. Errors of operands are
/// propagated without rounding. The bound therefore holds with and without fused multiply-adds,
/// which round less often. If the value overflows float, the error is infinite.
struct Approximate {
  double value = 0.0;
  double error = 0.0;

  /// Returns whether float arithmetic may have computed x: it differs from `value` by at most
  /// `error`. True for any x if the error is infinite.
  bool admits(float x) const;
};

Approximate operator+(const Approximate& a, const Approximate& b);
Approximate operator-(const Approximate& a, const Approximate& b);
Approximate operator*(const Approximate& a, const Approximate& b);
Approximate operator/(const Approximate& a, const Approximate& b);
Approximate square_root(const Approximate& a);

/// Checks that an optimizer's step follows from the released noisy gradient sum. With g that sum
/// divided by the expected batch size, theta the parameters, m and v their moments, lr the learning
/// rate, mu the momentum, wd the weight decay, b1 and b2 the moments' decay rates, bias1 and bias2
/// their bias corrections,
///   sgd       theta -= lr (g + wd theta)
///   momentum  m = mu m + g,  theta -= lr m
///   nesterov  m = mu m + g,  theta -= lr (g + mu m)
///   adam      m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
///             theta -= lr (m bias1) / (sqrt(v bias2) + epsilon)
///   adamw     adam with g without wd, after theta -= lr wd theta
/// and average = decay average + (1 - decay) theta. If gradients were transformed before clipping
/// (AdaCliP), checks only the average. Returns "" if `after` is the result of the update; otherwise
/// one line with the tensor, the index and the size of the first difference.
std::string follows(const transcript::State& before, std::span<const double> released,
                    const transcript::Update& after);

/// A released noisy gradient sum, and its noise multiplier. DP-AGD may release several in one
/// iteration.
struct Measured {
  double sigma = 0.0;
  std::vector<double> values;
};

/// Checks that a step of DP-AGD follows from the released noisy gradient sums. With g the mean of
/// `sums` weighted by 1 / sigma^2,
///   theta -= lr (g + wd theta) / |g + wd theta|,
/// in double, except that the direction and the result are rounded to float. Returns "" if
/// after.parameters is the result; otherwise one line that describes the first difference. before:
/// the state before the step.
std::string follows_descent(const transcript::State& before, std::span<const Measured> sums,
                            const transcript::Update& after);

}  // namespace cudp::verify
