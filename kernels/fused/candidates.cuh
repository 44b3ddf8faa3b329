#pragma once
// What becomes of an example of a fused kernel: its factors, whether it adds, what is reported of
// it; and candidates of importance sampling (contribution/importance.hpp) in a block.
#include <cmath>
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/fused.hpp"

namespace cudp::inline CUDP_SIMT {

/// threadIdx.x, asked for anew: what follows from it would otherwise be worked out before the loop
/// over the examples and take registers throughout.
__device__ __forceinline__ int thread_number() {
#ifdef __CUDA_ARCH__
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
#else
  return static_cast<int>(threadIdx.x);
#endif
}

/// The number in the data set of an example of the micro-batch.
__device__ __forceinline__ std::int64_t example_number(const FusedSum& a, int e) {
  const int at = a.batch.first + e;
  return static_cast<std::int64_t>(is_summed(a.task) ? a.examples[at]
                                                     : static_cast<std::uint32_t>(at));
}

/// Makes an example's factors from the squared norms of its layers, keeps its norm if the task has
/// norms, and returns whether it adds: not if it is not finite, not accepted, or not an example. A
/// warp calls it with equal arguments. factor_of(norm last seen, square) is called by the first
/// lane.
template <int layers, class NumberOf, class FactorOf>
__device__ __forceinline__ bool decide_example(const FusedSum& a, FusedTask task, bool exists,
                                               const NumberOf& number_of,
                                               const float (&squares)[layers],
                                               float (&factors)[layers],
                                               const FactorOf& factor_of) {
  if (task == FusedTask::clip)
    return clip_factors(clip_settings(a.clip, *a.sum_scale), squares, layers, factors) < INFINITY &&
           exists;
  float square = 0.0f, factor = 0.0f;
  CUDP_UNROLL for (int layer = 0; layer < layers; ++layer) { square += squares[layer]; }
  if (exists && thread_number() % kWarp == 0) {
    float& norm = a.norms[number_of()];
    if (task == FusedTask::accept) factor = factor_of(norm, square);
    norm = kept_norm(square);
  }
  factor = __shfl_sync(kFullWarp, factor, 0);
  CUDP_UNROLL for (int layer = 0; layer < layers; ++layer) { factors[layer] = factor; }
  return factor > 0.0f;
}

/// Writes what a launch reports of example `at` of the micro-batch, if it reports anything. By one
/// lane.
template <int layers>
__device__ __forceinline__ void report_example(const FusedSum& a, int at, float loss,
                                               const float (&squares)[layers],
                                               const float (&factors)[layers]) {
  if (a.losses == nullptr) return;
  a.losses[at] = loss;
  CUDP_UNROLL for (int layer = 0; layer < layers; ++layer) {
    a.squared_norms[layers * at + layer] = squares[layer];
    a.factors[layers * at + layer] = factors[layer];
  }
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
