#pragma once
// Last two layers and loss of the fused kernel for texts, and the gradient of the recurrent layer's
// states. A warp computes one text.
#include "kernels/fused/recurrent_block.cuh"

namespace cudp::fused::inline CUDP_SIMT {

/// Computes the layers after the recurrent one for text e, forward and backward. Scales the
/// gradient of its states by a power of two, chosen per text so that the largest number of that
/// gradient is in [1, 2). The gradients that are computed from it then fit into fp16. P: the
/// kernel's TextPlan for one network. t: the group's texts.
template <class P>
__device__ __forceinline__ void finish_text(const FusedSum& a, TextSpace<P>& s, const Texts<P>& t,
                                            int e, int label) {
  constexpr TextOffsets v = P::kText;
  constexpr int kEach = quotient_up(P::kStates, kWarp);
  const int lane = thread_number() % kWarp;
  const AnyFunction f = s.functions[1];
  float* const text = s.text[e];
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int i = lane + k * kWarp;
    if (i >= P::kStates) continue;
    const int row = i < P::kHidden ? s.length[e] : 1;  // row of the last step in each direction
    text[v.states + i] =
        low_half(*reinterpret_cast<const std::uint16_t*>(t.row(e, row) + 2 * (P::kWords + i)));
  }
  __syncwarp();
  const bool has_head = lane < P::kHead, has_logit = lane < P::kOutputs;
  float h = 0.0f;
  if (has_head) {
    h = a.parameters[P::kHeadBias + lane];
    const float* const w = a.parameters + P::kHeadWeights + lane * P::kStates;
    CUDP_UNROLL for (int k = 0; k < P::kStates; ++k) {
      h = ScalarLanes::fma(w[k], text[v.states + k], h);
    }
    h = f.value(h);
    text[v.head + lane] = h;
  }
  const float* const last = a.parameters + P::kLastWeights;
  float z = has_logit ? a.parameters[P::kLastBias + lane] : 0.0f;
  CUDP_UNROLL for (int k = 0; k < P::kHead; ++k) {
    const float x = __shfl_sync(kFullWarp, h, k);
    if (has_logit) z = ScalarLanes::fma(last[lane * P::kHead + k], x, z);
  }
  if (a.task == FusedTask::forward) {
    if (has_logit && t.group.has(e))
      a.logits[static_cast<std::int64_t>(t.group.at(e)) * P::kOutputs + lane] = z;
    return;
  }
  const ClassWeight weight(a, P::kTransforms, label);
  if (lane == 0) text[v.weight] = weight.of_factors;
  const float d = cross_entropy(has_logit ? z : -INFINITY, has_logit, label,
                                a.losses != nullptr ? text + v.loss : nullptr) *
                  weight.of_loss;
  if (has_logit) text[v.gradient + lane] = d;
  float d_head = 0.0f;
  CUDP_UNROLL for (int n = 0; n < P::kOutputs; ++n) {
    const float w = has_head ? last[n * P::kHead + lane] : 0.0f;
    d_head = ScalarLanes::fma(__shfl_sync(kFullWarp, d, n), w, d_head);
  }
  d_head *= f.derivative(h);
  if (has_head) text[v.gradient_head + lane] = d_head;
  float back[kEach], largest = 0.0f;
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int i = lane + k * kWarp;
    back[k] = 0.0f;
    CUDP_UNROLL for (int o = 0; o < P::kHead; ++o) {
      const float w = i < P::kStates ? a.parameters[P::kHeadWeights + o * P::kStates + i] : 0.0f;
      back[k] = ScalarLanes::fma(__shfl_sync(kFullWarp, d_head, o), w, back[k]);
    }
    const float size = magnitude(back[k]);
    largest = size > largest || size != size ? size : largest;
  }
  const u32 exponent = ScalarLanes::bits(warp_max(largest)) >> 23;
  const u32 field = exponent < 97 ? 157 : exponent > 252 ? 2 : 254 - exponent;
  const float scale = ScalarLanes::from_bits(field << 23);
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int i = lane + k * kWarp;
    if (i < P::kStates) text[v.back + i] = back[k] * scale;
  }
  if (lane == 0) text[v.inverse] = ScalarLanes::from_bits((254 - field) << 23);
}

}  // namespace cudp::fused::inline CUDP_SIMT
