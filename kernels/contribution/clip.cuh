#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/clip_math.hpp"

namespace cudp::inline CUDP_SIMT {

__device__ __forceinline__ float warp_square_sum(const float* x, int n) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < n; i += kWarp) sum += x[i] * x[i];
  return warp_sum(sum);
}

// Computes the squared norm of a dense layer's gradient for each example. grid: any. block: whole
// warps, one warp per example. smem: none.
__global__ inline void dense_gradient_norm_kernel(DenseGradientNorm a) {
  const int live = live_examples(a.batch);
  const auto warps = static_cast<int>(gridDim.x * blockDim.x / kWarp);
  for (auto e = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarp); e < live;
       e += warps) {
    const float x = warp_square_sum(a.x + static_cast<std::int64_t>(e) * a.inputs, a.inputs);
    const float dy = warp_square_sum(a.dy + static_cast<std::int64_t>(e) * a.outputs, a.outputs);
    if (threadIdx.x % kWarp == 0) a.parts[e] = dense_squared_norm(x, dy, a.outputs);
  }
}

/// Writes example e's squared gradient norm of each group g (layer with parameters) to squares
/// [groups]: the sum of rows group_parts[g] .. group_parts[g + 1] - 1 of parts [., capacity], which
/// are partial sums of squared norms. Returns the sum over all groups, the squared norm of the
/// whole gradient.
__device__ __forceinline__ float group_squares(const float* parts, const std::int32_t* group_parts,
                                               int groups, int capacity, int e, float* squares) {
  float total = 0.0f;
  for (int g = 0; g < groups; ++g) {
    float square = 0.0f;
    for (int part = group_parts[g]; part < group_parts[g + 1]; ++part)
      square += parts[static_cast<std::int64_t>(part) * capacity + e];
    squares[g] = square;
    total += square;
  }
  return total;
}

/// Second stage of importance sampling (DPIS): accepts or rejects each drawn example by the norm of
/// its gradient. Writes the factor that its gradient is multiplied by in the sum: 1 / norm if it is
/// accepted, 0 if it is rejected. grid, block: any, one thread per example. smem: none.
__global__ inline void accept_kernel(device::Accept a) {
  a.stream.step = *a.step;
  const ImportanceRule rule = *a.rule;
  for_each_example(a.batch, [&](int e) {
    const std::int64_t row = static_cast<std::int64_t>(e) * a.groups;
    const float square =
        group_squares(a.parts, a.group_parts, a.groups, a.batch.capacity, e, a.squared_norms + row);
    const std::uint32_t example = a.examples[a.batch.first + e];
    const float factor =
        accept_candidate(rule, a.stream, a.first + example, square, a.norms + example);
    for (int g = 0; g < a.groups; ++g) a.factors[row + g] = factor;
  });
}

// Stores the gradient norm of each example, for importance sampling. grid, block: any, one thread
// per example. smem: none.
__global__ inline void norms_kernel(device::Norms a) {
  for_each_example(a.batch, [&](int e) {
    float square = 0.0f;
    for (int part = 0; part < a.part_count; ++part)
      square += a.parts[static_cast<std::int64_t>(part) * a.batch.capacity + e];
    a.norms[a.batch.first + e] = kept_norm(square);
  });
}

// Computes clip factors. grid, block: any, one thread per example. smem: none.
__global__ inline void clip_kernel(device::Clip a) {
  const ClipSettings clip = clip_settings(a.clip, *a.scale);
  for_each_example(a.batch, [&](int e) {
    float* const squares = a.squared_norms + static_cast<std::int64_t>(e) * a.groups;
    group_squares(a.parts, a.group_parts, a.groups, a.batch.capacity, e, squares);
    float* const factors = a.factors + static_cast<std::int64_t>(e) * a.groups;
    clip_factors(clip, squares, a.groups, factors);
    if (a.class_weights == nullptr) return;
    const float weight = a.class_weights[a.label[e]];
    for (int g = 0; g < a.groups; ++g) {
      a.clip_factors[static_cast<std::int64_t>(e) * a.groups + g] = factors[g];
      factors[g] *= weight;
    }
  });
}

}  // namespace cudp::inline CUDP_SIMT
