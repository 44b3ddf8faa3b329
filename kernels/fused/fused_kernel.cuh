#pragma once
// One training step of a small network in one kernel, on tensor cores: a block keeps the weights
// and a group of examples in shared memory, and its sum of clipped gradients in registers. It takes
// one group after the other through forward pass, backward pass, norm and clipping. Operands are
// fp16 numbers or, where plan.hpp says so, sums of two fp16 numbers; matrix products accumulate in
// float32.
//
// A dense layer's gradient is x dy' for the weights and dy for the bias, so its squared norm is
// (|x|^2 + 1) |dy|^2 (dense_squared_norm), and its elements are computed only when they are added.
// A convolution's gradient is computed in registers for its norm, and kept there or computed again,
// bit for bit, for the sum. The sum over examples is of integers (fixed_point.hpp), so it depends
// on the examples alone, not on their order.
#include "kernels/fused/forward.cuh"
#include "kernels/fused/head.cuh"
#include "kernels/fused/pool.cuh"
#include "kernels/fused/sums.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Processes a whole network in one launch: forward and backward pass of every example of the
/// micro-batch, norms, clipping and the sum of contributions. Noise and update are a launch of
/// their own (finish_kernel). grid: a.blocks; one per multiprocessor is best. block: 512. dynamic
/// smem: shared_bytes<P>().
template <class P>
__global__ void __launch_bounds__(kThreads, 1) fused_kernel(FusedSum a) {
  constexpr int E = P::kExamples;
  constexpr int kConvolutions = P::kConvolutions;
  CUDP_DYNAMIC_SMEM(Space<P>, space);
  Space<P>& s = *space;
  const int live = live_examples(a.batch);
  const auto block = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);
  if (block >= live) return;
  Group group{.first = block, .apart = blocks, .live = live};

  // Copies weights and tables, clears the arrays, and loads the first group of examples.
  for (int i = thread_number(); i < Packed<P>::kBytes / kChunk; i += kThreads)
    copy_four_async(reinterpret_cast<float*>(s.image) + 4 * i,
                    reinterpret_cast<const float*>(a.packed) + 4 * i, true);
  for (int i = thread_number(); i < P::layout().bytes / kChunk; i += kThreads)
    reinterpret_cast<Four*>(s.planes)[i] = Four{};
  if (threadIdx.x < P::kStages.functions)
    s.functions[threadIdx.x] = AnyFunction(a.functions[threadIdx.x]);
  __syncthreads();
  fetch_features(a, s, group);
  if (threadIdx.x < E) plane_of<float>(s, P::layout().vector, threadIdx.x)[P::kVector.one] = 1.0f;
  wait_for_copies();
  __syncthreads();
  build_input(a, s, group);

  // Coordinate-wise clipping (kTransforms) is used with the clip task only.
  const FusedTask task = P::kTransforms ? FusedTask::clip : a.task;
  Sums<P> sums;
  for (int done = 0; group.first < live; done += E) {
    Group next = group;
    next.first += E * blocks;
    const int label = warp_number() < E ? a.labels[group.number(a, warp_number())] : 0;
    if (task == FusedTask::accept && done % kWarp == 0)
      s.candidates.prefetch(a, group.first, blocks, live);
    __syncthreads();
    if (next.first < live) fetch_features(a, s, next);

    for_constants<kConvolutions>([&](auto stage) {
      convolve<P, stage>(a, s);
      __syncthreads();
      pool_forward<P, stage>(s);
      __syncthreads();
    });
    hidden_forward(s);
    __syncthreads();
    last_layer(a, s, group, label);

    if (task != FusedTask::forward) {
      __syncthreads();
      hidden_backward(s);
      __syncthreads();
      for_constants<kConvolutions>([&](auto stage) {
        constexpr int i = kConvolutions - 1 - stage;
        pool_backward<P, i>(s);
        __syncthreads();
        sums.template square_units<i>(a, s);
        if constexpr (i > 0) input_gradient<P, i>(s);
        __syncthreads();
      });
      if constexpr (P::kTransforms) {
        sums.square_transformed(a, s);
        __syncthreads();
      }
      if (warp_number() < E)
        Sums<P>::decide(a, s, group, warp_number(), (done + warp_number()) % kWarp);
    }
    wait_for_copies();
    __syncthreads();
    if (is_summed(task)) {
      sums.add(a, s);
      if constexpr (!P::stage(0).has_example_owners) __syncthreads();
    }
    group = next;
    if (group.first < live) build_input(a, s, group);
  }
  if (is_summed(task))
    sums.store(s, a.slabs + static_cast<std::int64_t>(block) * P::kStages.parameters);
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
