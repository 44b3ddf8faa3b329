#pragma once
// An example of a linear model: its score, and its loss by the margin m = y score, for float and
// for a SIMD vector of floats, which is that many examples. Device and CPU do the same operations
// in the same order; what may differ is which products and sums their compilers fuse. So their
// scores, derivatives and losses agree to rounding (1e-5 of themselves), and to the bit where
// neither fuses.
#include "kernels/layers/activation_math.hpp"
#include "kernels/linear/sign_weights.hpp"

namespace cudp {

/// ln(1 + e) for 0 <= e <= 1, to 1e-7. The polynomial is the one of normal_math.hpp, for 1 + f in
/// [2/3, 4/3).
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

struct LogisticMargin {
  /// ln(1 + e^-m)
  template <class V>
  CUDP_HD V loss(V m) const {
    const V zero = V{};
    return log_one_plus(exp_of(zero - magnitude(m))) + (m < zero ? zero - m : zero);
  }
  /// d loss / d m = -1 / (1 + e^m)
  template <class V>
  CUDP_HD V derivative(V m) const {
    const V zero = V{};
    const V one = zero + 1.0f;
    const V e = exp_of(zero - magnitude(m));
    return zero - (m < zero ? one : e) / (one + e);
  }
};

struct HingeMargin {
  /// max(0, 1 - m)
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

/// Sum over j < d of x(j) w[j]: the even and the odd ones apart, for two chains of additions.
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

/// d (weight loss) / d score, shrunk so that its magnitude times norm, which is > 0, is at most
/// max_norm. sign 0 gives 0, and so does a NaN. So does a norm so large that max_norm / norm has
/// too few bits left in float32 to be a bound: its rounding could be up to half of it.
template <class Margin, class V>
CUDP_HD V clipped_derivative(V score, V sign, V norm, float max_norm, SignWeights weights = {}) {
  const V zero = V{};
  const V c = sign * weights.of(sign) * Margin{}.derivative(sign * score);
  const V most = (zero + max_norm) / norm;
  const V size = magnitude(c);
  const V clipped = size > most ? (c < zero ? zero - most : most) : c;
  const V kept = size <= zero + 1.0f ? clipped : zero;
  return most < zero + 0x1p-126f ? zero : kept;
}

/// min(weight loss, max_loss), which NaN is too; 0 where sign or weight is 0.
template <class Margin, class V>
CUDP_HD V clipped_loss(V score, V sign, float max_loss, SignWeights weights = {}) {
  const V zero = V{};
  const V most = zero + max_loss;
  const V weight = weights.of(sign);
  const V loss = weight * Margin{}.loss(sign * score);
  const V clipped = loss < most ? loss : most;
  return sign * weight == zero ? zero : clipped;
}

}  // namespace cudp
