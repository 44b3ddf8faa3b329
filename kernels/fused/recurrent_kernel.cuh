#pragma once
// One training step of a small network for texts in one kernel, on tensor cores. A block takes a
// group of texts through the dense layer of their words, all steps of an LSTM or GRU forward, the
// last layers, and all steps backward. Then it computes gradient, norm and clipping of one text
// after the other. Operands of products are fp16 numbers (for the words' layer, sums of two fp16
// numbers), sums are float32. Gates and their gradients are in global memory that stays in the
// second-level cache. Sums of gradients are integers (fixed_point.hpp): results depend on nothing
// but the texts.
#include "kernels/fused/recurrent_head.cuh"
#include "kernels/fused/recurrent_steps.cuh"
#include "kernels/fused/recurrent_sums.cuh"

namespace cudp::fused::inline CUDP_SIMT {

/// Adds the clipped gradients of the group's texts to the block's sum, one text after the other,
/// each in pieces. P: the kernel's TextPlan for one network. a: arguments of the launch. t: the
/// group's texts. s: the block's shared memory. sums: the thread's part of the block's sum. done:
/// number of texts in the groups that the block has processed before.
template <class P>
__device__ __forceinline__ void add_texts(const FusedSum& a, TextSpace<P>& s, const Texts<P>& t,
                                          int done, TextSums<P>& sums) {
  fetch_deltas(s, t, 0, 0);
  PieceVectors<P> vectors;
  vectors.fetch(a, t.group.number(a, 0), 0, s.length[0]);
  for (int e = 0; e < t.count; ++e) {
    float d[P::kNumbers];
    clear(d);
    for (int first = 0;; first += P::kPiece) {
      vectors.template put<false>(s);
      wait_for_copies();
      __syncthreads();
      words_back(s, t, e, first);
      TextSums<P>::multiply_gates(s, t, e, first, d);
      __syncthreads();
      const bool is_last = first + P::kPiece >= s.length[e];
      const int next = is_last ? e + 1 : e, next_first = is_last ? 0 : first + P::kPiece;
      if (next < t.count) {
        fetch_deltas(s, t, next, next_first);
        vectors.fetch(a, t.group.number(a, next), next_first, s.length[next]);
      }
      TextSums<P>::multiply_words(s, e, first, d);
      if (is_last) break;
      __syncthreads();
    }
    TextSums<P>::make_others(s, t, e, d);
    if constexpr (P::kTransforms) TextSums<P>::transform(a, s, e, d);
    TextSums<P>::square(s, d);
    __syncthreads();
    sums.decide_and_add(a, s, t.group, e, (done + e) % kWarp, d);
  }
}

// Fused step for texts. grid: a.blocks; one per multiprocessor is best. block: 256. dynamic smem:
// text_shared_bytes<P>(a.texts.group, a.texts.places).
template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) recurrent_kernel(FusedSum a) {
  CUDP_DYNAMIC_SMEM(TextSpace<P>, space);
  TextSpace<P>& s = *space;
  const int live = live_examples(a.batch);
  const auto block = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);
  if (block >= live) return;
  begin_texts(a, s);
  const FusedTask task = P::kTransforms ? FusedTask::clip : a.task;
  TextSums<P> sums;
  const int count = a.texts.group;
  for (int first = block, done = 0; first < live; first += count * blocks, done += count) {
    const Texts<P> t(a, s, {.first = first, .apart = blocks, .live = live});
    __syncthreads();
    if (task == FusedTask::accept && done % kWarp == 0)
      s.candidates.prefetch(a, first, blocks, live);
    begin_group(a, s, t);
    dense_words(a, s, t);
    __syncthreads();
    steps_forward(a, s, t);
    __syncthreads();
    if (warp_number() < count)
      finish_text(a, s, t, warp_number(), a.labels[t.group.number(a, warp_number())]);
    if (task == FusedTask::forward) continue;
    __syncthreads();
    steps_backward(a, s, t);
    __syncthreads();
    add_texts(a, s, t, done, sums);
  }
  if (is_summed(task)) sums.store(a.slabs + static_cast<std::int64_t>(block) * P::kParameters);
}

}  // namespace cudp::fused::inline CUDP_SIMT
