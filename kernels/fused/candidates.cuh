#pragma once
// Decisions of a fused kernel about an example: the factors of its gradient, whether it is added to
// the sum, and what is reported about it. Includes the second stage of importance sampling
// (contribution/importance.hpp).
#include <cmath>
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/fused.hpp"

namespace cudp::inline CUDP_SIMT {

/// Returns threadIdx.x, read again at each call. Otherwise the compiler would compute values
/// derived from it before the loop over examples, and they would occupy registers throughout.
__device__ __forceinline__ int thread_number() {
#ifdef __CUDA_ARCH__
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
#else
  return static_cast<int>(threadIdx.x);
#endif
}

/// Returns the index in the data set of example e of the micro-batch. a: arguments of the launch.
__device__ __forceinline__ std::int64_t example_number(const FusedSum& a, int e) {
  const int at = a.batch.first + e;
  return static_cast<std::int64_t>(is_summed(a.task) ? a.examples[at]
                                                     : static_cast<std::uint32_t>(at));
}

/// Returns whether class weights multiply the clip factors, after clipping. Otherwise they multiply
/// the gradient of the loss, before the gradient is clipped, normalised or transformed. task: what
/// the launch computes. transforms: whether gradients are transformed before clipping.
__device__ __forceinline__ bool weighs_factors(FusedTask task, bool transforms) {
  return task == FusedTask::clip && !transforms;
}

/// Weight of an example's class, in the one of the two places where weighs_factors() wants it; 1 in
/// the other, and in both without class weights.
struct ClassWeight {
  float of_loss = 1.0f, of_factors = 1.0f;

  /// label: the example's class. a: arguments of the launch. transforms: whether gradients are
  /// transformed before clipping.
  __device__ __forceinline__ ClassWeight(const FusedSum& a, bool transforms, int label) {
    if (a.class_weights == nullptr) return;
    const float weight = a.class_weights[label];
    if (weighs_factors(a.task, transforms))
      of_factors = weight;
    else
      of_loss = weight;
  }
};

/// Decides whether the gradient of one example is added to the sum, and returns the decision.
/// Returns false if the gradient is not finite, if importance sampling does not accept it, if the
/// example does not exist, or if the task is norms. Writes to `factors` the factor by which each
/// layer's gradient is multiplied. For the tasks accept and norms, also stores the norm of the
/// whole gradient in a.norms. A warp calls it with equal arguments in all lanes.
///
/// a: arguments of the launch. task: what the launch computes. exists: whether the micro-batch has
/// the example. number_of(): returns the example's index in the data set; called by the first lane
/// only, and only if the example exists. squares: the layers' squared norms; must be 0 from index
/// `layers` on. factor_of(seen, square): for the task accept, returns the factor of the gradient,
/// given the norm that was stored before and the current squared norm; called by the first lane.
template <int size, class NumberOf, class FactorOf>
__device__ __forceinline__ bool decide_example(const FusedSum& a, FusedTask task, bool exists,
                                               const NumberOf& number_of, int layers,
                                               const float (&squares)[size], float (&factors)[size],
                                               const FactorOf& factor_of) {
  if (task == FusedTask::clip)
    return clip_factors(clip_settings(a.clip, *a.sum_scale), squares, layers, factors, size) <
               INFINITY &&
           exists;
  float square = 0.0f, factor = 0.0f;
  CUDP_UNROLL for (int layer = 0; layer < size; ++layer) { square += squares[layer]; }
  if (exists && thread_number() % kWarp == 0) {
    float& norm = a.norms[number_of()];
    if (task == FusedTask::accept) factor = factor_of(norm, square);
    norm = kept_norm(square);
  }
  factor = __shfl_sync(kFullWarp, factor, 0);
  CUDP_UNROLL for (int layer = 0; layer < size; ++layer) { factors[layer] = factor; }
  return factor > 0.0f;
}

/// Writes loss, squared norms and factors of example `at` of the micro-batch, unless a.losses is
/// null. One lane calls it. a: arguments of the launch. squares, factors: squared norm and factor
/// of each of the `layers` layers.
template <int size>
__device__ __forceinline__ void report_example(const FusedSum& a, int at, float loss, int layers,
                                               const float (&squares)[size],
                                               const float (&factors)[size]) {
  if (a.losses == nullptr) return;
  a.losses[at] = loss;
  CUDP_UNROLL for (int layer = 0; layer < size; ++layer) {
    if (layer >= layers) break;
    a.squared_norms[layers * at + layer] = squares[layer];
    a.factors[layers * at + layer] = factors[layer];
  }
}

/// Returns the random word that decides whether importance sampling accepts an example. number: its
/// index in the data set. a: settings of importance sampling.
__device__ __forceinline__ std::uint32_t acceptance_word(const FusedAcceptance& a,
                                                         std::int64_t number) {
  RandomStream stream = a.stream;
  stream.step = *a.step;
  return random_word(stream, a.first + number);
}

/// Data in shared memory about the candidates of importance sampling that a block processes next:
/// the estimates and thresholds that follow from their stored norms, and the random words that
/// decide whether they are accepted.
struct PrefetchedCandidates {
  SeenNorm seen[kWarp];
  std::uint32_t word[kWarp];

  /// Loads examples first, first + stride, ... of the micro-batch, one per lane of the first warp.
  /// The caller must synchronise the block before reading them. a: arguments of the launch. live:
  /// number of examples of the micro-batch.
  __device__ __forceinline__ void prefetch(const FusedSum& a, int first, int stride, int live) {
    const auto lane = static_cast<int>(threadIdx.x);
    const int e = first + lane * stride;
    if (lane >= kWarp || e >= live) return;
    const std::int64_t number = example_number(a, e);
    seen[lane] = seen_norm(*a.accept.rule, a.norms[number]);
    word[lane] = acceptance_word(a.accept, number);
  }
};

}  // namespace cudp::inline CUDP_SIMT
