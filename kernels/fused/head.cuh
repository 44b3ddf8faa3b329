#pragma once
// Last layer and loss of the fused kernel, and the gradient of the hidden layer. A warp computes
// one example.
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/block.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

template <class T>
__device__ __forceinline__ T warp_max(T v) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const T other = __shfl_xor_sync(kFullWarp, v, offset);
    v = other > v || other != other ? other : v;
  }
  return v;
}

/// Computes softmax cross-entropy for logits of which each lane of a warp has one. Returns the
/// gradient of the lane's logit. has_logit: whether this lane has one. loss: written, unless null.
__device__ __forceinline__ float cross_entropy(float logit, bool has_logit, int label,
                                               float* loss) {
  const int lane = thread_number() % kWarp;
  const float top = warp_max(logit);
  const float power = has_logit ? exp_of(logit - top) : 0.0f;
  const float total = warp_sum(power);
  const float others = warp_sum(lane == label ? 0.0f : power);  // softmax - 1 without cancellation
  if (loss != nullptr) {
    const float at_label = __shfl_sync(kFullWarp, logit, label) - top;
    if (lane == 0) *loss = logf(total) - at_label;
  }
  return has_logit ? (lane == label ? -others : power) / total : 0.0f;
}

/// Computes, for example e of the group (the examples that the block processes at once), the
/// activation of the hidden layer, the logits and the loss (cross-entropy). If `logits` is not
/// null, only writes the logits to it. Otherwise also computes the gradients of the logits and of
/// the hidden layer's sums before activation. They are scaled by a power of two, chosen per example
/// so that the largest gradient of a logit is in [32, 64), the range of fp16. A warp calls it. P:
/// the kernel's Plan for one network.
template <class P>
__device__ __forceinline__ void finish_example(const FusedSum& a, Space<P>& s, int e, int label,
                                               float* logits) {
  constexpr DenseStages c = P::kDense;
  constexpr VectorOffsets v = P::kVector;
  constexpr int kEach = quotient_up(c.hidden, kWarp);
  const int lane = thread_number() % kWarp;
  const AnyFunction& f = s.functions[P::kStages.functions - 1];
  float* const vector = plane_of<float>(s, P::layout().vector, e);
  const float* const partial = plane_of<float>(s, P::layout().partial, e);
  float h[kEach];
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int o = lane + k * kWarp;
    h[k] = 0.0f;
    if (o >= c.hidden) continue;
    float z = floats_of(s, Packed<P>::kHiddenBias)[o];
    CUDP_UNROLL for (int w = 0; w < kWarps; ++w) { z += partial[w * c.hidden + o]; }
    h[k] = f.value(z);
    vector[v.hidden + o] = h[k];
  }
  __syncwarp();
  const bool has_logit = lane < c.outputs;
  const float* const last = floats_of(s, Packed<P>::kLast);
  float z = -INFINITY;
  if (has_logit) {
    z = floats_of(s, Packed<P>::kLastBias)[lane];
    CUDP_UNROLL for (int k = 0; k < c.hidden; k += 4) {
      const Four x = load_four(vector + v.hidden + k);
      const Four w = load_four(last + lane * c.last_pitch() + k);
      CUDP_UNROLL for (int n = 0; n < 4; ++n) { z = ScalarLanes::fma(x.v[n], w.v[n], z); }
    }
  }
  if (logits != nullptr) {
    if (has_logit) logits[lane] = z;
    return;
  }
  const ClassWeight weight(a, P::kTransforms, label);
  if (lane == 0) vector[v.weight] = weight.of_factors;
  float d = cross_entropy(z, has_logit, label, a.losses != nullptr ? vector + v.loss : nullptr) *
            weight.of_loss;
  const u32 exponent = ScalarLanes::bits(warp_max(magnitude(d))) >> 23;
  const u32 field = exponent < 102 ? 157 : 259 - exponent;
  d *= ScalarLanes::from_bits(field << 23);
  float square_h = 0.0f, square_gradient = 0.0f;
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int o = lane + k * kWarp;
    float gradient = 0.0f;
    CUDP_UNROLL for (int n = 0; n < c.outputs; ++n) {
      const float w = o < c.hidden ? last[n * c.last_pitch() + o] : 0.0f;
      gradient = ScalarLanes::fma(__shfl_sync(kFullWarp, d, n), w, gradient);
    }
    gradient *= f.derivative(h[k]);
    if (o >= c.hidden) continue;
    square_h = ScalarLanes::fma(h[k], h[k], square_h);
    square_gradient = ScalarLanes::fma(gradient, gradient, square_gradient);
    vector[v.gradient_hidden + o] = gradient;
    const SplitHalves parts = split_halves(gradient, 0.0f);
    plane_of<std::uint16_t>(s, P::layout().hidden_back[0], e)[o] =
        static_cast<std::uint16_t>(parts.high);
    if constexpr (P::kAll)
      plane_of<std::uint16_t>(s, P::layout().hidden_back[1], e)[o] =
          static_cast<std::uint16_t>(parts.low);
  }
  if (has_logit) vector[v.gradient + lane] = d;
  square_h = warp_sum(square_h);
  square_gradient = warp_sum(square_gradient);
  const float square_logits = warp_sum(d * d);
  if (lane != 0) return;
  vector[v.inverse] = ScalarLanes::from_bits((254 - field) << 23);
  vector[v.squares + 1] = square_gradient;
  vector[v.squares + 2] = square_h;
  vector[v.squares + 3] = square_logits;
}

/// Computes the squared norm of the hidden layer's inputs for example e. The inputs are read in the
/// precision in which the sum multiplies them: sums of two fp16 numbers if all products are split
/// (P::kAll), otherwise fp16. Writes the squared norm to the example's vector. A warp calls it. P:
/// the kernel's Plan for one network.
template <class P>
__device__ __forceinline__ void square_inputs(Space<P>& s, int e) {
  const int lane = thread_number() % kWarp;
  const u32* const high = plane_of<u32>(s, P::layout().hidden_in[0], e);
  const u32* const low = plane_of<u32>(s, P::layout().hidden_in[1], e);
  float square = 0.0f;
  CUDP_UNROLL for (int i = lane; i < P::kDense.in / 2; i += kWarp) {
    const Two x = numbers_at<P::kAll>(high, low, i);
    square = ScalarLanes::fma(x.x, x.x, square);
    square = ScalarLanes::fma(x.y, x.y, square);
  }
  square = warp_sum(square);
  if (lane == 0) plane_of<float>(s, P::layout().vector, e)[P::kVector.squares] = square;
}

/// Computes the last layer and the loss of all examples of `group` (those that the block processes
/// at once), one warp per example. Meanwhile other warps compute the squared norms of the hidden
/// layer's inputs. P: the kernel's Plan for one network. a: arguments of the launch.
template <class P>
__device__ __forceinline__ void last_layer(const FusedSum& a, Space<P>& s, const Group& group,
                                           int label) {
  constexpr int E = P::kExamples;
  const int warp = warp_number();
  if (warp < E) {
    float* logits = nullptr;
    if (a.task == FusedTask::forward) {
      if (!group.has(warp)) return;
      logits = a.logits + static_cast<std::int64_t>(group.at(warp)) * P::kDense.outputs;
    }
    finish_example(a, s, warp, label, logits);
  } else if (warp < 2 * E && a.task != FusedTask::forward) {
    square_inputs(s, warp - E);
  }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
