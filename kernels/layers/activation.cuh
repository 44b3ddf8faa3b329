#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/activation.hpp"
#include "kernels/layers/activation_math.hpp"

namespace cudp::inline CUDP_SIMT {

template <class Function>
__device__ __forceinline__ void activate_batch(const device::ActivationPass& a, const Function& f) {
  for_each_pixel(a.batch, a.to_planes.pixels(), [&](int e, int i) {
    const std::int64_t example = e;
    const Pixel at = a.to_planes.pixel(i);
    const float v = a.from[example * a.from_planes.size() + a.from_planes.at(at)];
    const float made = a.y == nullptr
                           ? f.value(v)
                           : v * f.derivative(a.y[example * a.y_planes.size() + a.y_planes.at(at)]);
    a.to[example * a.to_planes.size() + a.to_planes.at(at)] = stored(made, a.to_as);
  });
}

// Applies an activation, forward or backward (ActivationPass). grid: pixels, examples. block: any.
// smem: none.
__global__ inline void activation_kernel(device::ActivationPass a) {
  const Activate& f = a.function;
  if (f.kind == Activation::relu)
    activate_batch(a, Relu{});
  else if (f.kind == Activation::tanh)
    activate_batch(a, Tanh{});
  else
    activate_batch(a, TemperedSigmoid(f.scale, f.temperature, f.offset));
}

}  // namespace cudp::inline CUDP_SIMT
