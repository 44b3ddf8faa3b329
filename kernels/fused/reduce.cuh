#pragma once
// Parts that every fused kernel has: functions, sums in units, and the reduction of the blocks'
// sums.
#include <cstdint>

#include "kernels/common/fixed_point.cuh"
#include "kernels/fused/fused.hpp"
#include "kernels/fused/rows.cuh"
#include "kernels/layers/activation_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// Any activation as relu or as a tempered sigmoid: tanh is 2 / (1 + exp(-2 x)) - 1.
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

inline LaunchShape fused_shape(const FusedSum& a, std::size_t shared_bytes) {
  return {.grid = {static_cast<unsigned>(a.blocks)},
          .block = {kFusedThreads},
          .shared_bytes = shared_bytes};
}

// grid, block: any, a thread a number. smem: none.
__global__ inline void fused_reduce_kernel(FusedReduce a) {
  const int blocks = written_slabs(a.left);
  for_each_number(a.n, [&](std::int64_t j) {
    long long sum = static_cast<long long>(a.fixed[j]);
    for (int b = 0; b < blocks; ++b) sum += a.left.slabs[b * a.n + j];
    a.fixed[j] = static_cast<FixedPoint>(sum);
  });
}

}  // namespace cudp::inline CUDP_SIMT
