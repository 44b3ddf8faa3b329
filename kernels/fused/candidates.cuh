#pragma once
// Candidates of importance sampling (contribution/importance.hpp) in a block of a fused kernel.
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/fused/fused.hpp"

namespace cudp::inline CUDP_SIMT {

/// The number in the data set of an example of the micro-batch.
__device__ __forceinline__ std::int64_t example_number(const FusedSum& a, int e) {
  const int at = a.batch.first + e;
  return static_cast<std::int64_t>(is_summed(a.task) ? a.examples[at]
                                                     : static_cast<std::uint32_t>(at));
}

/// The squared norm of a gradient, from those of its layers.
template <int layers>
__device__ __forceinline__ float total_square(const float (&squares)[layers]) {
  float sum = 0.0f;
  CUDP_UNROLL for (int layer = 0; layer < layers; ++layer) { sum += squares[layer]; }
  return sum;
}

/// An example's word of the acceptance stream.
__device__ __forceinline__ std::uint32_t acceptance_word(const FusedAcceptance& a,
                                                         std::int64_t number) {
  RandomStream stream = a.stream;
  stream.step = *a.step;
  return random_word(stream, a.first + number);
}

/// The next candidates of a block, in shared memory: what is known of them before their gradients.
struct WaitingCandidates {
  SeenNorm seen[kWarp];
  std::uint32_t word[kWarp];

  /// Makes those of the micro-batch's examples first, first + apart, ..., a lane of the first warp
  /// each. The block must meet before they are read.
  __device__ __forceinline__ void make(const FusedSum& a, int first, int apart, int live) {
    const auto lane = static_cast<int>(threadIdx.x);
    const int e = first + lane * apart;
    if (lane >= kWarp || e >= live) return;
    const std::int64_t number = example_number(a, e);
    seen[lane] = seen_norm(*a.accept.rule, a.norms[number]);
    word[lane] = acceptance_word(a.accept, number);
  }
};

}  // namespace cudp::inline CUDP_SIMT
