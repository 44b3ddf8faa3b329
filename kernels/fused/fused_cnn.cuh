#pragma once
// Small networks whole: a block keeps the weights in shared memory and its sum of clipped gradients
// in registers, and takes one example after the other through forward, backward, norm and clip.
//
// A dense layer's gradient is x dy', so its norm is (|x|^2 + 1) |dy|^2 (dense_squared_norm) and it
// is formed only as it is added. A convolution's gradient is formed once, in the registers of the
// threads that then own the same numbers of the sum. Sums are integers (fixed_point.hpp): results
// depend on nothing but the examples.
#include <cstdint>

#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/candidates.cuh"
#include "kernels/fused/fused_conv.cuh"
#include "kernels/fused/fused_dense.cuh"
#include "kernels/fused/reduce.cuh"

namespace cudp::inline CUDP_SIMT {

/// Sizes that follow from a description (fused_models.hpp).
template <class Model>
struct Fused {
  using A = Conv<typename Model::First>;
  using B = Conv<typename Model::Second>;
  static constexpr int kFeatures = A::kChannels * A::kHeight * A::kWidth;
  static constexpr int kIn = B::kPooled;  ///< of the hidden dense layer
  static constexpr int kHidden = Model::kHidden;
  static constexpr int kOutputs = Model::kOutputs;
  static constexpr int kLayers = 4;

  // Places in the flat parameters.
  static constexpr int kBiasA = A::kWeights;
  static constexpr int kWeightB = kBiasA + A::kOut;
  static constexpr int kBiasB = kWeightB + B::kWeights;
  static constexpr int kWeightH = kBiasB + B::kOut;
  static constexpr int kBiasH = kWeightH + kHidden * kIn;
  static constexpr int kWeightO = kBiasH + kHidden;
  static constexpr int kBiasO = kWeightO + kOutputs * kHidden;
  static constexpr int kParameters = kBiasO + kOutputs;

  static_assert(A::kPooledHeight == B::kHeight && A::kPooledWidth == B::kWidth &&
                A::kOut == B::kChannels);
  static_assert(kIn % kFusedThreads == 0 && kHidden == kWarp && kOutputs <= kWarp);
};

/// Whose weights are in shared memory besides the last layer's; the others are read from device
/// memory, through the caches, where a block has too little.
enum class FusedWeights { all, convolutions, second_convolution };

/// A block's shared memory.
template <class Model, FusedWeights weights>
struct FusedSpace {
  using R = Fused<Model>;
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
  float weight_o[R::kOutputs * R::kHidden];
  float bias_a[R::A::kOut], bias_b[R::B::kOut], bias_h[R::kHidden], bias_o[R::kOutputs];
  alignas(16) float hidden[R::kHidden];
  alignas(16) float gradient_hidden[R::kHidden];
  float logits[R::kOutputs], gradient_logits[R::kOutputs];
  float bias_gradient_a[R::A::kOut], bias_gradient_b[R::B::kOut];
  float square_hidden, square_gradient_hidden, square_gradient_logits, loss;
  float squares[3][kFusedThreads / kWarp];  // by warp: first, second layer, dense inputs
  alignas(16) WaitingCandidates candidates;
  AnyFunction functions[3];  // here and not in registers, which the sums take
  std::uint8_t which_a[R::A::kPooled], which_b[R::B::kPooled];
};

template <class Model, FusedWeights weights>
constexpr std::size_t fused_bytes() {
  return sizeof(FusedSpace<Model, weights>);
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

/// A thread's part of the block's sum, in units.
template <class Model>
struct FusedTotal {
  using R = Fused<Model>;
  using A = typename R::A;
  using B = typename R::B;
  static constexpr int kRows = R::kIn / kFusedThreads;
  /// The parameters that are left: biases and the last layer.
  static constexpr int kSmall = A::kOut + B::kOut + R::kHidden + R::kOutputs * (R::kHidden + 1);
  static constexpr int kSmallEach = (kSmall + kFusedThreads - 1) / kFusedThreads;

  int first[A::kKept];
  int second[B::kKept];
  int hidden[kRows][R::kHidden];
  int small[kSmallEach];

  __device__ __forceinline__ FusedTotal() {
    clear(first);
    clear(second);
    CUDP_UNROLL for (int k = 0; k < kRows; ++k) { clear(hidden[k]); }
    clear(small);
  }

  /// Calls body(i, layer, index, gradient) for the thread's small parameters.
  template <class Space, class Body>
  static __device__ __forceinline__ void for_each_small(const Space& s, const Body& body) {
    CUDP_UNROLL for (int i = 0; i < kSmallEach; ++i) {
      int n = thread_number() + i * kFusedThreads;
      if (n >= kSmall) continue;
      if (n < A::kOut) {
        body(i, 0, R::kBiasA + n, s.bias_gradient_a[n]);
      } else if ((n -= A::kOut) < B::kOut) {
        body(i, 1, R::kBiasB + n, s.bias_gradient_b[n]);
      } else if ((n -= B::kOut) < R::kHidden) {
        body(i, 2, R::kBiasH + n, s.gradient_hidden[n]);
      } else if ((n -= R::kHidden) < R::kOutputs * R::kHidden) {
        body(i, 3, R::kWeightO + n, s.gradient_logits[n / R::kHidden] * s.hidden[n % R::kHidden]);
      } else {
        n -= R::kOutputs * R::kHidden;
        body(i, 3, R::kBiasO + n, s.gradient_logits[n]);
      }
    }
  }

  /// Adds an example's gradient times `scale`, a number a layer. It is finite, and its norm was
  /// made of these numbers: no product is above the clipping norm, which is at most 2^21 units.
  template <class Space>
  __device__ __forceinline__ void add(const float (&scale)[R::kLayers], const Space& s,
                                      const float (&gradient_a)[A::kGradients],
                                      const float (&gradient_b)[B::kGradients]) {
    CUDP_UNROLL for (int i = 0; i < A::kKept; ++i) {
      first[i] += rounded_product(scale[0], gradient_a[i]);
    }
    CUDP_UNROLL for (int i = 0; i < B::kKept; ++i) {
      second[i] += rounded_product(scale[1], gradient_b[i]);
    }
    CUDP_UNROLL for (int k = 0; k < kRows; ++k) {
      const float x = scale[2] * s.pooled_b[thread_number() + k * kFusedThreads];
      CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) {
        hidden[k][o] += rounded_product(x, s.gradient_hidden[o]);
      }
    }
    for_each_small(s, [&](int i, int layer, int, float gradient) {
      small[i] += rounded_product(scale[layer], gradient);
    });
  }

  template <class Space>
  __device__ __forceinline__ void store(const Space& s, std::int32_t* slab) const {
    GradientShare<A>().for_each_kept([&](int i, int index) { slab[index] = first[i]; });
    GradientShare<B>().for_each_kept(
        [&](int i, int index) { slab[R::kWeightB + index] = second[i]; });
    CUDP_UNROLL for (int k = 0; k < kRows; ++k) {
      CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) {
        slab[R::kWeightH + o * R::kIn + thread_number() + k * kFusedThreads] = hidden[k][o];
      }
    }
    for_each_small(s, [&](int i, int, int index, float) { slab[index] = small[i]; });
  }
};

// grid: a.blocks, one a multiprocessor is best. block: 256. dynamic smem: fused_bytes(), by
// FusedWeights in KB: cnn 162.6, 98.6; scatter-cnn 181.5, 117.5, 72.0. A block of an H200 may
// have 227 KB, of an A100 163, of Ada 99.
template <class Model, FusedWeights weights>
__global__ void __launch_bounds__(kFusedThreads, 1) fused_sum_kernel(FusedSum a) {
  using R = Fused<Model>;
  using A = typename R::A;
  using B = typename R::B;
  using Space = FusedSpace<Model, weights>;
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

  FusedTotal<Model> total;
  __syncthreads();  // the zeros come before the first example
  for (int e = block; e < live; e += blocks) {
    if (a.task == FusedTask::accept && s.candidates.taken % kWarp == 0)
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
    if (a.task == FusedTask::forward) {
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

    // Norm. A number in a lane that has no example is 0.
    float own[3] = {square_a, square_b, square_h};
    GradientShare<A>().for_each_kept([&](int i, int) { own[0] += gradient_a[i] * gradient_a[i]; });
    GradientShare<B>().for_each_kept([&](int i, int) { own[1] += gradient_b[i] * gradient_b[i]; });
    CUDP_UNROLL for (int layer = 0; layer < 3; ++layer) {
      own[layer] = warp_sum(own[layer]);
      if (threadIdx.x % kWarp == 0) s.squares[layer][threadIdx.x / kWarp] = own[layer];
    }
    __syncthreads();
    float squares[R::kLayers] = {};
    CUDP_UNROLL for (int layer = 0; layer < 3; ++layer) {
      CUDP_UNROLL for (int w = 0; w < kFusedThreads / kWarp; ++w) {
        squares[layer] += s.squares[layer][w];
      }
    }
    squares[2] = dense_squared_norm(squares[2], s.square_gradient_hidden, R::kHidden);
    squares[3] = dense_squared_norm(s.square_hidden, s.square_gradient_logits, R::kOutputs);

    // Choose the factors and add. An example that is not finite has factors 0 and must not be
    // added.
    float factors[R::kLayers];
    bool adds;
    if (a.task == FusedTask::clip) {
      adds = clip_factors(clip_settings(a.clip, *a.sum_scale), squares, R::kLayers, factors) <
             INFINITY;
    } else {
      const float square = added_up(squares);
      if (a.task == FusedTask::norms) {
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
      total.add(factors, s, gradient_a, gradient_b);
    }
  }
  if (is_summed(a.task))
    total.store(s, a.slabs + static_cast<std::int64_t>(block) * R::kParameters);
}

}  // namespace cudp::inline CUDP_SIMT
