#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/group_norm.hpp"

namespace cudp::inline CUDP_SIMT {

/// Calls body(pixel) for every pixel of channels first .. first + channels - 1 of one example; the
/// calls are distributed over the threads of the block. x: layout of the example's channels.
template <class Body>
__device__ __forceinline__ void for_each_in_channels(const CountedPlanes& x, int first,
                                                     int channels, const Body& body) {
  const int plane = x.height * x.width;
  for (int i = static_cast<int>(threadIdx.x); i < channels * plane;
       i += static_cast<int>(blockDim.x))
    body(x.pixel(first * plane + i));
}

// Forward pass of group normalisation. grid: groups, examples. block: whole warps, at most 1024.
// static smem: 32 floats.
__global__ inline void group_norm_kernel(device::GroupNorm a) {
  CUDP_SHARED(float, partial, [32]);
  const std::int64_t e = blockIdx.y;
  if (e >= live_examples(a.batch)) return;
  const int channels = a.x_planes.channels / a.groups;
  const int first = static_cast<int>(blockIdx.x) * channels;
  const auto count = static_cast<float>(channels * a.x_planes.height * a.x_planes.width);
  const float* const x = a.x + e * a.x_planes.size();
  float* const y = a.y + e * a.y_planes.size();

  float sum = 0.0f;
  for_each_in_channels(a.x_planes, first, channels,
                       [&](const Pixel& at) { sum += x[a.x_planes.at(at)]; });
  const float mean = block_sum(sum, partial) / count;
  float square = 0.0f;
  for_each_in_channels(a.x_planes, first, channels, [&](const Pixel& at) {
    const float d = x[a.x_planes.at(at)] - mean;
    square += d * d;
  });
  const float inverse = 1.0f / sqrtf(next_block_sum(square, partial) / count + a.epsilon);
  for_each_in_channels(a.x_planes, first, channels, [&](const Pixel& at) {
    const float z = (x[a.x_planes.at(at)] - mean) * inverse;
    y[a.y_planes.at(at)] = stored(z * a.weight[at.channel] + a.bias[at.channel], a.y_as);
  });
  if (threadIdx.x == 0) {
    float* const s = a.statistics + (e * a.groups + blockIdx.x) * 2;
    s[0] = mean;
    s[1] = inverse;
  }
}

// Backward pass of group normalisation. grid: groups, examples. block: whole warps, at most 1024.
// static smem: 32 floats.
__global__ inline void group_norm_backward_kernel(device::GroupNormBackward a) {
  CUDP_SHARED(float, partial, [32]);
  const std::int64_t e = blockIdx.y;
  if (e >= live_examples(a.batch)) return;
  const int channels = a.x_planes.channels / a.groups;
  const int first = static_cast<int>(blockIdx.x) * channels;
  const auto count = static_cast<float>(channels * a.x_planes.height * a.x_planes.width);
  const float* const x = a.x + e * a.x_planes.size();
  const float* const dy = a.dy + e * a.dy_planes.size();
  const float mean = a.statistics[(e * a.groups + blockIdx.x) * 2];
  const float inverse = a.statistics[(e * a.groups + blockIdx.x) * 2 + 1];
  float* const gradient = a.gradient + e * 2 * a.x_planes.channels;

  // Computes dx = (u - mean of u - z mean of (u z)) inverse, with z = (x - mean) inverse and u = dy
  // weight.
  float square = 0.0f;
  float mean_u = 0.0f;
  float mean_uz = 0.0f;
  for (int c = first; c < first + channels; ++c) {
    float bias = 0.0f;
    float weight = 0.0f;
    for_each_in_channels(a.x_planes, c, 1, [&](const Pixel& at) {
      const float dy_at = dy[a.dy_planes.at(at)];
      bias += dy_at;
      weight += dy_at * ((x[a.x_planes.at(at)] - mean) * inverse);
    });
    bias = next_block_sum(bias, partial);
    weight = next_block_sum(weight, partial);
    square += transformed_square(a.transform, c, weight) +
              transformed_square(a.transform, a.x_planes.channels + c, bias);
    mean_u += a.weight[c] * bias / count;
    mean_uz += a.weight[c] * weight / count;
    if (threadIdx.x == 0) {
      gradient[c] = weight;
      gradient[a.x_planes.channels + c] = bias;
    }
  }
  if (threadIdx.x == 0)
    a.parts[static_cast<std::int64_t>(blockIdx.x) * a.batch.capacity + e] = square;
  if (a.dx == nullptr) return;
  float* const dx = a.dx + e * a.dx_planes.size();
  for_each_in_channels(a.x_planes, first, channels, [&](const Pixel& at) {
    const float z = (x[a.x_planes.at(at)] - mean) * inverse;
    const float u = dy[a.dy_planes.at(at)] * a.weight[at.channel];
    dx[a.dx_planes.at(at)] = stored((u - mean_u - z * mean_uz) * inverse, a.dx_as);
  });
}

// Adds weighted rows to a sum (WeightedRows). grid: columns, groups of kRowsPerBlock examples.
// block: any. smem: none.
__global__ inline void weighted_rows_kernel(WeightedRows a) {
  const int live = live_examples(a.batch);
  const int begin = static_cast<int>(blockIdx.y) * kRowsPerBlock;
  const int end = begin + kRowsPerBlock < live ? begin + kRowsPerBlock : live;
  if (begin >= end) return;
  const float inverse_grid = a.scale->inverse_grid;
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (auto c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); c < a.columns; c += step) {
    std::int32_t sum = 0;
    for (int e = begin; e < end; ++e) {
      const float factor = a.factors[static_cast<std::int64_t>(e) * a.factor_stride];
      if (factor == 0.0f) continue;
      float w = a.rows[static_cast<std::int64_t>(e) * a.columns + c];
      if (a.transform.mean != nullptr) w = (w - a.transform.mean[c]) * a.transform.inverse[c];
      sum += saturated_product(factor * inverse_grid, w);
    }
    atomicAdd(a.sum + c, static_cast<FixedPoint>(static_cast<long long>(sum)));
  }
}

}  // namespace cudp::inline CUDP_SIMT
