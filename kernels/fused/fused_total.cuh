#pragma once
// What a thread of a fused kernel for convolutions adds of an example, and its part of the block's
// sum.
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/fused/fused_conv.cuh"
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

  /// A thread's inputs of the hidden layer.
  static constexpr int kRows = kIn / kFusedThreads;
  /// The parameters that are left: biases and the last layer; a thread's at most.
  static constexpr int kSmall = A::kOut + B::kOut + kHidden + kOutputs * (kHidden + 1);
  static constexpr int kSmallEach = (kSmall + kFusedThreads - 1) / kFusedThreads;

  static_assert(A::kPooledHeight == B::kHeight && A::kPooledWidth == B::kWidth &&
                A::kOut == B::kChannels);
  static_assert(kIn % kFusedThreads == 0 && kHidden == kWarp && kOutputs <= kWarp);
};

/// Calls body(i, layer, index, gradient) for the thread's small parameters.
template <class R, class Space, class Body>
__device__ __forceinline__ void for_each_small(const Space& s, const Body& body) {
  using A = typename R::A;
  using B = typename R::B;
  CUDP_UNROLL for (int i = 0; i < R::kSmallEach; ++i) {
    int n = thread_number() + i * kFusedThreads;
    if (n >= R::kSmall) continue;
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

// Where gradients are transformed (contribution/coordinates_math.hpp), w = (g - m) / scale is made
// once an example: what is squared is what is added.

__device__ __forceinline__ float transformed(const Transform& t, int at, float gradient) {
  return (gradient - t.mean[at]) * t.inverse[at];
}
/// A convolution's numbers in place, whose parameters begin at `first`; returns the sum of the
/// squares.
template <class C>
__device__ __forceinline__ float transform_convolution(const Transform& t, int first,
                                                       float (&gradient)[C::kGradients]) {
  float square = 0.0f;
  GradientShare<C>().for_each_kept([&](int i, int index) {
    gradient[i] = transformed(t, first + index, gradient[i]);
    square += gradient[i] * gradient[i];
  });
  return square;
}

/// A thread's w of the dense layers and the biases: in registers where
/// Model::kTransformedInRegisters says so, or else in the block's shared memory, at places that no
/// other thread looks at.
template <class Model>
struct TransformedNumbers {
  using R = Fused<Model>;
  static constexpr bool kInRegisters = Model::kTransformedInRegisters;
  float hidden[kInRegisters ? R::kRows : 1][kInRegisters ? R::kHidden : 1];
  float small[kInRegisters ? R::kSmallEach : 1];

  template <class Space>
  __device__ __forceinline__ float hidden_at(const Space& s, int k, int o) const {
    if constexpr (kInRegisters) {
      return hidden[k][o];
    } else {
      return s.transformed_h[o * R::kIn + thread_number() + k * kFusedThreads];
    }
  }

  template <class Space>
  __device__ __forceinline__ float small_at(const Space& s, int i) const {
    if constexpr (kInRegisters) {
      return small[i];
    } else {
      return s.transformed_small[thread_number() + i * kFusedThreads];
    }
  }

  /// Makes the hidden layer's weights; returns the sum of the squares.
  template <class Space>
  __device__ __forceinline__ float make_hidden(const Transform& t, Space& s) {
    float square = 0.0f;
    CUDP_UNROLL for (int k = 0; k < R::kRows; ++k) {
      const int i = thread_number() + k * kFusedThreads;
      const float x = s.pooled_b[i];
      // What is read at once takes registers, of which few are left where w is not in them.
      CUDP_UNROLL_BY(kInRegisters ? R::kHidden : 4)
      for (int o = 0; o < R::kHidden; ++o) {
        const int at = o * R::kIn + i;
        const float w = transformed_product(x, s.gradient_hidden[o], t.mean[R::kWeightH + at],
                                            t.inverse[R::kWeightH + at]);
        square += w * w;
        if constexpr (kInRegisters) {
          hidden[k][o] = w;
        } else {
          s.transformed_h[at] = w;
        }
      }
    }
    return square;
  }
  /// Makes the others, of which the block must have met; adds their squares by layer.
  template <class Space>
  __device__ __forceinline__ void make_small(const Transform& t, Space& s,
                                             float (&squares)[R::kLayers]) {
    clear(small);
    for_each_small<R>(s, [&](int i, int layer, int index, float gradient) {
      const float w = transformed(t, index, gradient);
      squares[layer] += w * w;
      if constexpr (kInRegisters) {
        small[i] = w;
      } else {
        s.transformed_small[thread_number() + i * kFusedThreads] = w;
      }
    });
  }
};

/// A thread's part of the block's sum, in units.
template <class Model>
struct FusedTotal {
  using R = Fused<Model>;
  using A = typename R::A;
  using B = typename R::B;

  int first[A::kKept];
  int second[B::kKept];
  int hidden[R::kRows][R::kHidden];
  int small[R::kSmallEach];

  __device__ __forceinline__ FusedTotal() {
    clear(first);
    clear(second);
    CUDP_UNROLL for (int k = 0; k < R::kRows; ++k) { clear(hidden[k]); }
    clear(small);
  }

  // What an example adds: its numbers times `scale`, one a layer. They are finite, and the norm was
  // made of them: no product is above the clipping norm, which is at most 2^21 units.

  __device__ __forceinline__ void add_convolutions(const float (&scale)[R::kLayers],
                                                   const float (&gradient_a)[A::kGradients],
                                                   const float (&gradient_b)[B::kGradients]) {
    CUDP_UNROLL for (int i = 0; i < A::kKept; ++i) {
      first[i] += rounded_product(scale[0], gradient_a[i]);
    }
    CUDP_UNROLL for (int i = 0; i < B::kKept; ++i) {
      second[i] += rounded_product(scale[1], gradient_b[i]);
    }
  }
  template <class Space>
  __device__ __forceinline__ void add_dense(const float (&scale)[R::kLayers], const Space& s) {
    CUDP_UNROLL for (int k = 0; k < R::kRows; ++k) {
      const float x = scale[2] * s.pooled_b[thread_number() + k * kFusedThreads];
      CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) {
        hidden[k][o] += rounded_product(x, s.gradient_hidden[o]);
      }
    }
    for_each_small<R>(s, [&](int i, int layer, int, float gradient) {
      small[i] += rounded_product(scale[layer], gradient);
    });
  }
  template <class Space>
  __device__ __forceinline__ void add_dense(const float (&scale)[R::kLayers], const Space& s,
                                            const TransformedNumbers<Model>& w) {
    CUDP_UNROLL for (int k = 0; k < R::kRows; ++k) {
      CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) {
        hidden[k][o] += rounded_product(scale[2], w.hidden_at(s, k, o));
      }
    }
    for_each_small<R>(s, [&](int i, int layer, int, float) {
      small[i] += rounded_product(scale[layer], w.small_at(s, i));
    });
  }

  template <class Space>
  __device__ __forceinline__ void store(const Space& s, std::int32_t* slab) const {
    GradientShare<A>().for_each_kept([&](int i, int index) { slab[index] = first[i]; });
    GradientShare<B>().for_each_kept(
        [&](int i, int index) { slab[R::kWeightB + index] = second[i]; });
    CUDP_UNROLL for (int k = 0; k < R::kRows; ++k) {
      CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) {
        slab[R::kWeightH + o * R::kIn + thread_number() + k * kFusedThreads] = hidden[k][o];
      }
    }
    for_each_small<R>(s, [&](int i, int, int index, float) { slab[index] = small[i]; });
  }
};

}  // namespace cudp::inline CUDP_SIMT
