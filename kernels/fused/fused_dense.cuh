#pragma once
// The dense layers of one example by a block, in shared memory; R is Fused<Model>, fused_cnn.cuh.
#include "kernels/fused/rows.cuh"
#include "kernels/layers/loss_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// hidden = f(weight x + bias): a warp some outputs, its lanes four inputs at a time.
template <class R, class Function>
__device__ __forceinline__ void hidden_forward(const Function& f, const float* x,
                                               const float* weight, const float* bias,
                                               float* hidden) {
  constexpr int kEach = R::kHidden / (kFusedThreads / kWarp);
  const int lane = thread_number() % kWarp;
  const int first = thread_number() / kWarp * kEach;
  float sums[kEach];
  clear(sums);
  CUDP_UNROLL for (int i = 0; i < R::kIn; i += 4 * kWarp) {
    float from[4];
    read_row<4>(x + (i + 4 * lane), from);
    CUDP_UNROLL for (int o = 0; o < kEach; ++o) {
      float w[4];
      read_row<4>(weight + ((first + o) * R::kIn + i + 4 * lane), w);
      CUDP_UNROLL for (int k = 0; k < 4; ++k) { sums[o] += from[k] * w[k]; }
    }
  }
  CUDP_UNROLL for (int o = 0; o < kEach; ++o) {
    sums[o] = warp_sum(sums[o]);
    if (lane == o) hidden[first + o] = f.value(sums[o] + bias[first + o]);
  }
}

/// The last layer, the loss, and their gradients back to the hidden layer; one warp's work.
template <class R, class Space, class Function>
__device__ __forceinline__ void outputs_and_back(const Function& f, int label, Space& s) {
  if (threadIdx.x >= kWarp) return;
  const int lane = thread_number();
  const float h = s.hidden[lane];
  CUDP_UNROLL for (int o = 0; o < R::kOutputs; ++o) {
    const float z = warp_sum(h * s.weight_o[o * R::kHidden + lane]);
    if (lane == o) s.logits[o] = z + s.bias_o[o];
  }
  __syncwarp();
  if (lane == 0)
    s.loss =
        evaluate_loss(Loss::softmax_cross_entropy, s.logits, R::kOutputs, label, s.gradient_logits);
  __syncwarp();
  float gradient = 0.0f;
  CUDP_UNROLL for (int o = 0; o < R::kOutputs; ++o) {
    gradient += s.gradient_logits[o] * s.weight_o[o * R::kHidden + lane];
  }
  gradient *= f.derivative(h);
  s.gradient_hidden[lane] = gradient;
  const float d = lane < R::kOutputs ? s.gradient_logits[lane] : 0.0f;
  const float square_h = warp_sum(h * h);
  const float square_gradient = warp_sum(gradient * gradient);
  const float square_logits = warp_sum(d * d);
  if (lane != 0) return;
  s.square_hidden = square_h;
  s.square_gradient_hidden = square_gradient;
  s.square_gradient_logits = square_logits;
}

/// gradient = weight' gradient_hidden: a thread some inputs. Returns the squares of x at those
/// inputs.
template <class R>
__device__ __forceinline__ float hidden_backward(const float* x, const float* weight,
                                                 const float* gradient_hidden, float* gradient) {
  float square = 0.0f;
  float from[R::kHidden];
  read_row<4>(gradient_hidden, from);
  CUDP_UNROLL for (int k = 0; k < R::kIn / kFusedThreads; ++k) {
    const int i = thread_number() + k * kFusedThreads;
    float sum = 0.0f;
    CUDP_UNROLL for (int o = 0; o < R::kHidden; ++o) { sum += from[o] * weight[o * R::kIn + i]; }
    gradient[i] = sum;
    square += x[i] * x[i];
  }
  return square;
}

}  // namespace cudp::inline CUDP_SIMT
