#pragma once
// Power of two by which the gradients of one example's loss are multiplied before they are rounded
// to fp16.
#include <cstdint>

#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Returns the exponent field of a float that is the power of two for example e: with it, the
/// largest derivative of the example's loss by a logit is in [32, 64). logit_gradients: [examples,
/// outputs], these derivatives.
__device__ __forceinline__ std::uint32_t loss_exponent(const float* logit_gradients, int outputs,
                                                       int e) {
  std::uint32_t largest = 0;
  for (int i = 0; i < outputs; ++i) {
    const std::uint32_t bits =
        ScalarLanes::bits(logit_gradients[static_cast<std::int64_t>(e) * outputs + i]) &
        0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest >> 23 < 102 ? 157 : 259 - (largest >> 23);
}

}  // namespace cudp::inline CUDP_SIMT
