#pragma once
// Small networks whole: a block keeps the weights in shared memory and its sum of clipped gradients
// in registers, and takes one example after the other through forward, backward, norm and clip.
//
// A dense layer's gradient is x dy', so its norm is (|x|^2 + 1) |dy|^2 (dense_squared_norm) and it
// is formed only as it is added. A convolution's gradient is formed once, in the registers of the
// threads that then own the same numbers of the sum. Sums are integers (fixed_point.hpp): results
// depend on nothing but the examples.
//
// Where gradients are transformed before they are clipped (contribution/coordinates_math.hpp),
// every number of an example is formed once, in place of the gradient's, by the thread that then
// squares and adds it.
#include <cstdint>

#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/candidates.cuh"
#include "kernels/fused/fused_conv.cuh"
#include "kernels/fused/fused_dense.cuh"
#include "kernels/fused/fused_total.cuh"
#include "kernels/fused/reduce.cuh"

namespace cudp::inline CUDP_SIMT {

/// Whose weights are in shared memory besides the last layer's; the others are read from device
/// memory, through the caches, where a block has too little.
enum class FusedWeights { all, convolutions, second_convolution };

/// A block's shared memory. transforms: gradients are, before they are clipped.
template <class Model, FusedWeights weights, bool transforms>
struct FusedSpace {
  using R = Fused<Model>;
  static constexpr bool kHasTransformed = transforms && !Model::kTransformedInRegisters;
  static constexpr bool kHasA = weights != FusedWeights::second_convolution;
  static constexpr bool kHasHidden = weights == FusedWeights::all;
  alignas(16) float x[R::A::kInput];
  alignas(16) float y_a[R::A::kOutput];      // later: its gradient
  alignas(16) float pooled_a[R::B::kInput];  // later: its gradient
  alignas(16) float y_b[R::B::kOutput];      // later: its gradient
  alignas(16) float pooled_b[R::kIn];
  alignas(16) float gradient_pooled_b[R::kIn];
  alignas(16) float weight_a[kHasA ? R::A::kWeightSpace : 4];
  alignas(16) float weight_b[R::B::kWeightSpace];
  alignas(16) float weight_h[kHasHidden ? R::kHidden * R::kIn : 4];
  float transformed_h[kHasTransformed ? R::kHidden * R::kIn : 1];
  float transformed_small[kHasTransformed ? R::kSmallEach * kFusedThreads : 1];
  float weight_o[R::kOutputs * R::kHidden];
  float bias_a[R::A::kOut], bias_b[R::B::kOut], bias_h[R::kHidden], bias_o[R::kOutputs];
  alignas(16) float hidden[R::kHidden];
  alignas(16) float gradient_hidden[R::kHidden];
  float logits[R::kOutputs], gradient_logits[R::kOutputs];
  float bias_gradient_a[R::A::kOut], bias_gradient_b[R::B::kOut];
  float square_hidden, square_gradient_hidden, square_gradient_logits, loss;
  float squares[transforms ? 4 : 3][kFusedThreads / kWarp];  // by warp, see the norm
  alignas(16) WaitingCandidates candidates;
  AnyFunction functions[3];  // here and not in registers, which the sums take
  std::uint8_t which_a[R::A::kPooled], which_b[R::B::kPooled];
};

template <class Model, FusedWeights weights, bool transforms>
constexpr std::size_t fused_bytes() {
  return sizeof(FusedSpace<Model, weights, transforms>);
}

/// The features of one example on their way from the data set: read while another is worked on, if
/// they take few registers.
template <class Model>
struct Incoming {
  using A = typename Fused<Model>::A;
  static constexpr int kFeatures = Fused<Model>::kFeatures;
  static constexpr int kEach = (kFeatures + kFusedThreads - 1) / kFusedThreads;
  static constexpr bool kAhead = kEach <= 4;
  std::uint32_t raw[kAhead ? kEach : 1];  // a byte, or a float's bits
  std::int64_t example;
  int label;

  static __device__ __forceinline__ std::uint32_t raw_of(const FusedSum& a, std::int64_t at) {
    return a.bytes != nullptr ? a.bytes[at] : same_bits<std::uint32_t>(a.floats[at]);
  }
  __device__ __forceinline__ void read(const FusedSum& a, std::int64_t number) {
    example = number;
    label = a.labels[number];
    if constexpr (kAhead) {
      CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
        const int i = thread_number() + k * kFusedThreads;
        raw[k] = i < kFeatures ? raw_of(a, example * kFeatures + i) : 0;
      }
    }
  }
  __device__ __forceinline__ void store(const FusedSum& a, float* x) const {
    CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
      const int i = thread_number() + k * kFusedThreads;
      if (i >= kFeatures) continue;
      const std::uint32_t v = kAhead ? raw[kAhead ? k : 0] : raw_of(a, example * kFeatures + i);
      x[A::input_at(i / (A::kHeight * A::kWidth), i / A::kWidth % A::kHeight, i % A::kWidth)] =
          a.bytes != nullptr ? a.scale * static_cast<float>(v) + a.shift : same_bits<float>(v);
    }
  }
};

// grid: a.blocks, one a multiprocessor is best. block: 256. dynamic smem: fused_bytes(), by
// FusedWeights in KB: cnn 162.6, 98.6; scatter-cnn 181.5, 117.5, 72.0, with transforms (247.6),
// 183.6, 138.0. A block of an H200 may have 227 KB, of an A100 163, of Ada 99.
template <class Model, FusedWeights weights, bool transforms>
__global__ void __launch_bounds__(kFusedThreads, 1) fused_sum_kernel(FusedSum a) {
  using R = Fused<Model>;
  using A = typename R::A;
  using B = typename R::B;
  using Space = FusedSpace<Model, weights, transforms>;
  CUDP_DYNAMIC_SMEM(Space, space);
  Space& s = *space;
  const int live = live_examples(a.batch);
  const auto block = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);
  if (block >= live) return;
  const auto number_of = [&](int e) { return example_number(a, e < live ? e : live - 1); };
  Incoming<Model> incoming;
  incoming.read(a, number_of(block));
  std::int64_t next = number_of(block + blocks);

  // Weights; borders of zeros.
  const float* const p = a.parameters;
  for_each_of_block(A::kInput, [&](int i) { s.x[i] = 0.0f; });
  for_each_of_block(B::kInput, [&](int i) { s.pooled_a[i] = 0.0f; });
  for_each_of_block(B::kOutput, [&](int i) { s.y_b[i] = 0.0f; });
  if constexpr (Space::kHasA)
    for_each_of_block(A::kWeights, [&](int i) { s.weight_a[A::weight_at(i)] = p[i]; });
  for_each_of_block(B::kWeights, [&](int i) { s.weight_b[B::weight_at(i)] = p[R::kWeightB + i]; });
  if constexpr (Space::kHasHidden)
    for_each_of_block(R::kHidden * R::kIn, [&](int i) { s.weight_h[i] = p[R::kWeightH + i]; });
  for_each_of_block(R::kOutputs * R::kHidden, [&](int i) { s.weight_o[i] = p[R::kWeightO + i]; });
  for_each_of_block(A::kOut, [&](int i) { s.bias_a[i] = p[R::kBiasA + i]; });
  for_each_of_block(B::kOut, [&](int i) { s.bias_b[i] = p[R::kBiasB + i]; });
  for_each_of_block(R::kHidden, [&](int i) { s.bias_h[i] = p[R::kBiasH + i]; });
  for_each_of_block(R::kOutputs, [&](int i) { s.bias_o[i] = p[R::kBiasO + i]; });
  static_assert(Space::kHasA || A::kWeightsAreFlat);
  const float* const weight_a = Space::kHasA ? s.weight_a : p;
  const float* const weight_h = Space::kHasHidden ? s.weight_h : p + R::kWeightH;
  if (threadIdx.x == 0) s.candidates.taken = 0;
  if (threadIdx.x < 3) s.functions[threadIdx.x] = AnyFunction(a.functions[threadIdx.x]);
  const auto flat_b = [](int c, int y, int x) {
    return (c * B::kPooledHeight + y) * B::kPooledWidth + x;
  };

  // Gradients are transformed for a clipped sum alone.
  const FusedTask task = transforms ? FusedTask::clip : a.task;
  FusedTotal<Model> total;
  __syncthreads();  // the zeros come before the first example
  for (int e = block; e < live; e += blocks) {
    if (task == FusedTask::accept && s.candidates.taken % kWarp == 0)
      s.candidates.make(a, e, blocks, live);
    incoming.store(a, s.x);
    const int label = incoming.label;
    incoming.read(a, next);
    next = number_of(e + 2 * blocks);
    __syncthreads();

    // Forward.
    convolve<A>(s.functions[0], s.x, weight_a, s.bias_a, s.y_a);
    __syncthreads();
    pool<A>(s.y_a, s.which_a,
            [&](int c, int y, int x, float v) { s.pooled_a[B::input_at(c, y, x)] = v; });
    __syncthreads();
    convolve<B>(s.functions[1], s.pooled_a, s.weight_b, s.bias_b, s.y_b);
    __syncthreads();
    pool<B>(s.y_b, s.which_b,
            [&](int c, int y, int x, float v) { s.pooled_b[flat_b(c, y, x)] = v; });
    __syncthreads();
    hidden_forward<R>(s.functions[2], s.pooled_b, weight_h, s.bias_h, s.hidden);
    __syncthreads();
    outputs_and_back<R>(s.functions[2], label, s);
    __syncthreads();
    if (task == FusedTask::forward) {
      if (threadIdx.x < R::kOutputs)
        a.logits[static_cast<std::int64_t>(e) * R::kOutputs + threadIdx.x] = s.logits[threadIdx.x];
      continue;
    }

    // Backward.
    const float square_h =
        hidden_backward<R>(s.pooled_b, weight_h, s.gradient_hidden, s.gradient_pooled_b);
    __syncthreads();
    pool_backward<B>(
        s.functions[1], s.which_b,
        [&](int c, int y, int x) { return s.gradient_pooled_b[flat_b(c, y, x)]; }, s.y_b);
    __syncthreads();
    float gradient_b[B::kGradients];
    weight_gradient<B>(s.pooled_a, s.y_b, gradient_b);
    const float square_b = bias_gradient<B>(s.y_b, s.bias_gradient_b);
    input_gradient<B>(s.y_b, s.weight_b, s.pooled_a);
    __syncthreads();
    pool_backward<A>(
        s.functions[0], s.which_a,
        [&](int c, int y, int x) {
          return is_seen<B>(y, x) ? s.pooled_a[B::input_at(c, y, x)] : 0.0f;
        },
        s.y_a);
    __syncthreads();
    float gradient_a[A::kGradients];
    weight_gradient<A>(s.x, s.y_a, gradient_a);
    const float square_a = bias_gradient<A>(s.y_a, s.bias_gradient_a);

    // Norm. A number in a lane that has no example is 0. The squares are the layers' own where
    // gradients are transformed; else those of both convolutions and of the hidden layer's inputs.
    TransformedNumbers<Model> w;
    float own[R::kLayers] = {square_a, square_b, square_h, 0.0f};
    if constexpr (transforms) {
      own[0] = transform_convolution<A>(a.transform, 0, gradient_a);
      own[1] = transform_convolution<B>(a.transform, R::kWeightB, gradient_b);
      own[2] = w.make_hidden(a.transform, s);
      __syncthreads();  // the first layer's bias gradients are there
      w.make_small(a.transform, s, own);
    } else {
      GradientShare<A>().for_each_kept(
          [&](int i, int) { own[0] += gradient_a[i] * gradient_a[i]; });
      GradientShare<B>().for_each_kept(
          [&](int i, int) { own[1] += gradient_b[i] * gradient_b[i]; });
    }
    constexpr int kSums = transforms ? R::kLayers : 3;
    CUDP_UNROLL for (int layer = 0; layer < kSums; ++layer) {
      own[layer] = warp_sum(own[layer]);
      if (threadIdx.x % kWarp == 0) s.squares[layer][threadIdx.x / kWarp] = own[layer];
    }
    __syncthreads();
    float squares[R::kLayers] = {};
    CUDP_UNROLL for (int layer = 0; layer < kSums; ++layer) {
      CUDP_UNROLL for (int i = 0; i < kFusedThreads / kWarp; ++i) {
        squares[layer] += s.squares[layer][i];
      }
    }
    if constexpr (!transforms) {
      squares[2] = dense_squared_norm(squares[2], s.square_gradient_hidden, R::kHidden);
      squares[3] = dense_squared_norm(s.square_hidden, s.square_gradient_logits, R::kOutputs);
    }

    // Choose the factors and add. An example that is not finite has factors 0 and must not be
    // added.
    float factors[R::kLayers];
    bool adds;
    if (task == FusedTask::clip) {
      adds = clip_factors(clip_settings(a.clip, *a.sum_scale), squares, R::kLayers, factors) <
             INFINITY;
    } else {
      const float square = total_square(squares);
      if (task == FusedTask::norms) {
        if (threadIdx.x == 0) a.norms[example_number(a, e)] = kept_norm(square);
        continue;
      }
      if (threadIdx.x == 0) s.candidates.decide(a, e, square);
      __syncthreads();
      CUDP_UNROLL for (int layer = 0; layer < R::kLayers; ++layer) {
        factors[layer] = s.candidates.factor;
      }
      adds = factors[0] > 0.0f;
    }
    if (a.losses != nullptr && threadIdx.x == 0) {
      a.losses[e] = s.loss;
      CUDP_UNROLL for (int layer = 0; layer < R::kLayers; ++layer) {
        a.squared_norms[R::kLayers * e + layer] = squares[layer];
        a.factors[R::kLayers * e + layer] = factors[layer];
      }
    }
    if (adds) {
      CUDP_UNROLL for (int layer = 0; layer < R::kLayers; ++layer) {
        factors[layer] *= a.sum_scale->inverse_grid;
      }
      total.add_convolutions(factors, gradient_a, gradient_b);
      if constexpr (transforms)
        total.add_dense(factors, s, w);
      else
        total.add_dense(factors, s);
    }
  }
  if (is_summed(task)) total.store(s, a.slabs + static_cast<std::int64_t>(block) * R::kParameters);
}

}  // namespace cudp::inline CUDP_SIMT
