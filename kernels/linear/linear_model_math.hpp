#pragma once
// Arithmetic for one example of a linear model: its score x'w, and its loss as a function of the
// margin m = y score, with y = -1 or 1 its class. V is float, or a SIMD vector of floats, one per
// example. Device and CPU do the same operations in the same order, but their compilers may fuse
// different products and sums. Scores, derivatives and losses agree to a relative error of 1e-5,
// and to the bit if neither compiler fuses.
#include "kernels/layers/activation_math.hpp"
#include "kernels/linear/sign_weights.hpp"

namespace cudp {

/// Returns ln(1 + e) for 0 <= e <= 1, with an error below 1e-7. V: float or a SIMD vector of
/// floats.
template <class V>
CUDP_HD V log_one_plus(V e) {
  const V zero = V{};
  const auto upper = e > zero + 0.33333333f;
  const V f = upper ? e * 0.5f - 0.5f : e;
  V q = f * -0x1.32a566p-2f + 0x1.3a35e6p-2f;
  q = q * f + -0x1.19ee1ep-2f;
  q = q * f + 0x1.507b60p-2f;
  q = q * f + -0x1.9a30cep-2f;
  q = q * f + 0x1.00111ep-1f;
  q = q * f + -0x1.5553e0p-1f;
  q = q * f + 0x1.ffffeep-1f;
  const V log_mantissa = f - q * (f * f) * 0.5f;
  return log_mantissa + (upper ? zero + 0.69314718f : zero);
}

/// The logistic loss of a linear model as a function of the margin (class times score), as a
/// template argument of kernels.
struct LogisticMargin {
  /// Returns the logistic loss ln(1 + e^-m) for the margin m = y * score, with y = -1 or 1 the
  /// class. V: float or a SIMD vector of floats.
  template <class V>
  CUDP_HD V loss(V m) const {
    const V zero = V{};
    return log_one_plus(exp_of(zero - magnitude(m))) + (m < zero ? zero - m : zero);
  }
  /// Returns the derivative of the logistic loss with respect to the margin m: -1 / (1 + e^m). V:
  /// float or a SIMD vector of floats.
  template <class V>
  CUDP_HD V derivative(V m) const {
    const V zero = V{};
    const V one = zero + 1.0f;
    const V e = exp_of(zero - magnitude(m));
    return zero - (m < zero ? one : e) / (one + e);
  }
};

/// The hinge loss of a linear model as a function of the margin (class times score), as a template
/// argument of kernels.
struct HingeMargin {
  /// Returns the hinge loss max(0, 1 - m) for the margin m = y * score, with y = -1 or 1 the class.
  /// V: float or a SIMD vector of floats.
  template <class V>
  CUDP_HD V loss(V m) const {
    const V slack = (V{} + 1.0f) - m;
    return V{} > slack ? V{} : slack;
  }
  template <class V>
  CUDP_HD V derivative(V m) const {
    const V one = V{} + 1.0f;
    return m < one ? V{} - one : m * 0.0f;  // NaN stays NaN
  }
};

/// Returns a linear model's score of one example: the sum over j < d of x(j) * w[j]. Even and odd j
/// are summed separately and then added: the two chains of additions run in parallel. V: float, or
/// a SIMD vector with one example per lane. Feature: type of the function x.
template <class V, class Feature>
CUDP_HD V linear_score(const Feature& x, const float* w, int d) {
  V even{};
  V odd{};
  int j = 0;
  for (; j + 2 <= d; j += 2) {
    even += x(j) * w[j];
    odd += x(j + 1) * w[j + 1];
  }
  if (j < d) even += x(j) * w[j];
  return even + odd;
}

/// Returns the derivative of an example's weighted loss with respect to its score, reduced so that
/// its magnitude times `norm` is at most clip_norm. norm: the norm of the score's gradient with
/// respect to the parameters, > 0. sign: the class, -1 or 1; 0 for no example. Returns 0 if sign is
/// 0, if the derivative is NaN, and if clip_norm / norm is below 2^-126. (Such a float32 quotient
/// may have a rounding error of half its size, so it would not be a safe bound.) Margin:
/// LogisticMargin or HingeMargin. V: float, or a SIMD vector with one example per lane.
template <class Margin, class V>
CUDP_HD V clipped_derivative(V score, V sign, V norm, float clip_norm, SignWeights weights = {}) {
  const V zero = V{};
  const V c = sign * weights.of(sign) * Margin{}.derivative(sign * score);
  const V bound = (zero + clip_norm) / norm;
  const V size = magnitude(c);
  const V clipped = size > bound ? (c < zero ? zero - bound : bound) : c;
  const V kept = size <= zero + 1.0f ? clipped : zero;
  return bound < zero + 0x1p-126f ? zero : kept;
}

/// Returns min(weighted loss, max_loss); max_loss if the loss is NaN; 0 if sign or weight is 0.
/// sign: the example's class, -1 or 1; 0 for no example. Margin: LogisticMargin or HingeMargin. V:
/// float, or a SIMD vector with one example per lane. score: the linear model's score of the
/// example.
template <class Margin, class V>
CUDP_HD V clipped_loss(V score, V sign, float max_loss, SignWeights weights = {}) {
  const V zero = V{};
  const V bound = zero + max_loss;
  const V weight = weights.of(sign);
  const V loss = weight * Margin{}.loss(sign * score);
  const V clipped = loss < bound ? loss : bound;
  return sign * weight == zero ? zero : clipped;
}

}  // namespace cudp
