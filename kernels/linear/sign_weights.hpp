#pragma once
#include "kernels/common/host_device.hpp"

namespace cudp {

/// Weight of an example's loss, by its class: sign -1 is the first class, 1 the second. Each weight
/// is in 0..1, so bounds on a gradient or a loss hold for weighted ones, too.
struct SignWeights {
  float negative = 1.0f;
  float positive = 1.0f;

  bool operator==(const SignWeights&) const = default;

  /// Returns the weight for a class's sign. V: float for one example, or a SIMD vector of examples.
  template <class V>
  CUDP_HD V of(V sign) const {
    const V zero = V{};
    return sign < zero ? zero + negative : zero + positive;
  }
};

}  // namespace cudp
