#pragma once
#include "kernels/common/host_device.hpp"

namespace cudp {

/// What the loss of an example counts, by its sign: -1 is the first class, 1 the second. Each in
/// 0..1, so that every bound on a gradient or a loss holds with them, too.
struct SignWeights {
  float negative = 1.0f;
  float positive = 1.0f;

  bool operator==(const SignWeights&) const = default;

  /// The weight of each sign; for one example, or a vector.
  template <class V>
  CUDP_HD V of(V sign) const {
    const V zero = V{};
    return sign < zero ? zero + negative : zero + positive;
  }
};

}  // namespace cudp
