#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/image.cuh"
#include "kernels/layers/loss.hpp"
#include "kernels/layers/loss_math.hpp"

namespace cudp::inline CUDP_SIMT {

// Computes losses and their gradients. grid, block: any, one thread per example. smem: none.
__global__ inline void loss_kernel(device::LossValues a) {
  for_each_example(a.batch, [&](int e) {
    const std::int64_t row = static_cast<std::int64_t>(e) * a.outputs;
    float* const logit_gradient = a.logit_gradient != nullptr ? a.logit_gradient + row : nullptr;
    a.value[e] =
        a.targets != nullptr
            ? target_loss(a.loss, a.logits[row], a.targets[number_in_set(a.batch, a.examples, e)],
                          a.huber, logit_gradient)
            : evaluate_loss(a.loss, a.logits + row, a.outputs, a.label[e], logit_gradient);
    if (logit_gradient == nullptr) return;
    if (a.class_weights != nullptr)
      for (int i = 0; i < a.outputs; ++i) logit_gradient[i] *= a.class_weights[a.label[e]];
    float* const gradient = a.gradient + static_cast<std::int64_t>(e) * a.gradient_planes.size();
    for (int i = 0; i < a.outputs; ++i)
      gradient[a.gradient_planes.pixel_offset(i)] = stored(logit_gradient[i], a.gradient_as);
  });
}

}  // namespace cudp::inline CUDP_SIMT
