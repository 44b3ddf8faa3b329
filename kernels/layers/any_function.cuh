#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/activation_math.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp::inline CUDP_SIMT {

/// Activation function whose kind is known at run time only. It is evaluated as relu or as a
/// tempered sigmoid; tanh is the tempered sigmoid 2 / (1 + exp(-2 x)) - 1.
struct AnyFunction {
  bool is_relu;
  TemperedSigmoid sigmoid;

  AnyFunction() = default;
  __device__ __forceinline__ explicit AnyFunction(const Activate& f)
      : is_relu(f.kind == Activation::relu),
        sigmoid(f.kind == Activation::tanh ? TemperedSigmoid(2.0f, 2.0f, 1.0f)
                                           : TemperedSigmoid(f.scale, f.temperature, f.offset)) {}
  __device__ __forceinline__ float value(float x) const {
    return is_relu ? Relu{}.value(x) : sigmoid.value(x);
  }
  __device__ __forceinline__ float derivative(float y) const {
    return is_relu ? Relu{}.derivative(y) : sigmoid.derivative(y);
  }
};

}  // namespace cudp::inline CUDP_SIMT
