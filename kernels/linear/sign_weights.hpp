#pragma once
#include "kernels/common/host_device.hpp"

namespace cudp {

/// Weights of the two classes of a linear model, with which an example's loss is multiplied. The
/// class with sign -1 is the first, the one with sign 1 the second. Each weight is in 0..1, so a
/// bound on an example's gradient or loss also holds for the weighted one.
struct SignWeights {
  float negative = 1.0f;
  float positive = 1.0f;

  bool operator==(const SignWeights&) const = default;

  /// Returns the weight of the class with the given sign, -1 or 1. V: float for one example, or a
  /// SIMD vector with one example per lane.
  template <class V>
  CUDP_HD V of(V sign) const {
    const V zero = V{};
    return sign < zero ? zero + negative : zero + positive;
  }
};

}  // namespace cudp
