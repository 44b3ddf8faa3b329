#pragma once
// Activations and the exponential that they use, for float and for a SIMD vector of floats (a GNU
// vector type), on host and device: plain arithmetic without library calls or branches.
#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// Type of 32-bit integers with as many lanes as V: the type of a comparison of two vectors if V is
/// a SIMD vector of floats, int32 if V is float.
template <class V>
struct BitsOf {
  using type = decltype(V{} < V{});
};
template <>
struct BitsOf<float> {
  using type = std::int32_t;
};

/// Returns the bits of the value `from` as type To, which must have the same size.
template <class To, class From>
CUDP_HD To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// Returns |x|, by clearing the sign bit. V: float or a SIMD vector of floats.
template <class V>
CUDP_HD V magnitude(V x) {
  using Bits = typename BitsOf<V>::type;
  return same_bits<V>(same_bits<Bits>(x) & 0x7fffffff);
}

/// Splits x = n ln 2 + r with n an integer and |r| <= ln 2 / 2. Writes 2^n to *power_of_two and
/// returns e^r - 1, correct to 1 ulp (the distance between neighbouring floats) even if the result
/// is small. Requires -87.3 <= x <= 88; NaN gives NaN. V: float or a SIMD vector of floats.
template <class V>
CUDP_HD V expm1_reduced(V x, V* power_of_two) {
  using Bits = typename BitsOf<V>::type;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const V shifted = x * 1.44269504f + kRound;
  const V n = shifted - kRound;
  const V r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  V q = r * 1.39467616e-3f + 8.36676452e-3f;
  q = q * r + 4.16662768e-2f;
  q = q * r + 1.66665420e-1f;
  q = q * r + 0.5f;
  // The low bits of `shifted` hold n.
  *power_of_two = same_bits<V>(((same_bits<Bits>(shifted) & 0x1ff) + 127) << 23);
  return q * (r * r) + r;
}

/// Returns e^x, correct to 2 ulp for -87.3 <= x <= 88. Outside of this range, returns e^x for the
/// end of the range that is nearer to x. NaN gives NaN. V: float or a SIMD vector of floats.
template <class V>
CUDP_HD V exp_of(V x) {
  const V low = V{} - 87.3f;
  const V high = V{} + 88.0f;
  x = low > x ? low : x;  // this order of operands keeps NaN
  x = high < x ? high : x;
  V scale;
  const V t = expm1_reduced(x, &scale);
  return t * scale + scale;
}

/// Returns tanh x, correct to 4 ulp (distances between neighbouring floats). |tanh x| is computed
/// as t / (t + 2) with t = e^(2|x|) - 1. NaN gives NaN. V: float or a SIMD vector of floats.
template <class V>
CUDP_HD V tanh_of(V x) {
  using Bits = typename BitsOf<V>::type;
  const V high = V{} + 20.0f;  // tanh is 1 to the last bit from e^20 on
  V twice = magnitude(x) * 2.0f;
  twice = high < twice ? high : twice;
  V scale;
  const V part = expm1_reduced(twice, &scale);
  const V t = part * scale + (scale - 1.0f);
  const V y = t / (t + 2.0f);
  return same_bits<V>(same_bits<Bits>(y) |
                      (same_bits<Bits>(x) & static_cast<std::int32_t>(1u << 31)));
}

// An activation is a function of one number whose derivative can be computed from its value. So the
// backward pass needs only the outputs.

/// Relu: max(x, 0). NaN gives NaN.
struct Relu {
  template <class V>
  CUDP_HD V value(V x) const {
    const V zero = V{};
    return zero > x ? zero : x;
  }
  template <class V>
  CUDP_HD V derivative(V y) const {
    const V zero = V{};
    const V one = zero + 1.0f;
    return y > zero ? one : zero;
  }
};

struct Tanh {
  template <class V>
  CUDP_HD V value(V x) const {
    return tanh_of(x);
  }
  template <class V>
  CUDP_HD V derivative(V y) const {
    return (V{} + 1.0f) - y * y;
  }
};

/// Tempered sigmoid: scale / (1 + exp(-temperature x)) - offset (Papernot et al. 2021). It is
/// computed as gain tanh(rate x) + shift, which is the same function; the constructor derives gain,
/// rate and shift.
struct TemperedSigmoid {
  float gain, rate, shift;

  TemperedSigmoid() = default;
  CUDP_HD TemperedSigmoid(float scale, float temperature, float offset)
      : gain(0.5f * scale), rate(0.5f * temperature), shift(0.5f * scale - offset) {}

  template <class V>
  CUDP_HD V value(V x) const {
    return tanh_of(x * rate) * gain + shift;
  }
  template <class V>
  CUDP_HD V derivative(V y) const {
    const V u = y - shift;
    return (V{} + gain * rate) - u * u * (rate / gain);
  }
};

}  // namespace cudp
