#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/mean_over_time.hpp"

namespace cudp::inline CUDP_SIMT {

/// Returns the weight of each word in the mean over a text's positions: 1 / length, or 1 if the
/// text is empty (to avoid a division by 0).
__device__ __forceinline__ float weight_of_place(int length) {
  return 1.0f / static_cast<float>(length > 1 ? length : 1);
}

// Computes the mean over each text's positions (MeanOverTime). grid: examples. block: 128, one
// thread per channel. static smem: 16 bytes.
__global__ inline void mean_over_time_kernel(device::MeanOverTime a) {
  CUDP_SHARED(float, partial, [128 / kWarp]);
  const auto e = static_cast<std::int64_t>(blockIdx.x);
  if (e >= live_examples(a.batch)) return;
  const int channels = a.y_planes.channels;
  const int length = a.length[e];
  const float weight = weight_of_place(length);
  const float* const x = a.x + e * a.places * channels;
  float* const y = a.y + e * a.y_planes.size();
  float square = 0.0f;
  for (auto c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) {
    float sum = 0.0f;
    for (int t = 0; t < length; ++t) sum += x[t * channels + c];
    sum *= weight;
    square += sum * sum;
    y[a.y_planes.at(c, 0, 0)] = sum;
  }
  if (a.norm == nullptr) return;
  const float norm = sqrtf(block_sum(square, partial));
  if (threadIdx.x == 0) a.norm[e] = norm;
  if (!(norm > 0.0f)) return;
  const float inverse = 1.0f / norm;
  for (auto c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
    y[a.y_planes.at(c, 0, 0)] *= inverse;
}

// Backward pass: for y = m / |m|, the gradient dy becomes that of the mean m, (dy - y (y dy)) /
// |m|. grid: examples. block: 128, one thread per channel. static smem: 16 bytes.
__global__ inline void mean_over_time_backward_kernel(device::MeanOverTimeBackward a) {
  CUDP_SHARED(float, partial, [128 / kWarp]);
  const auto e = static_cast<std::int64_t>(blockIdx.x);
  if (e >= live_examples(a.batch)) return;
  const int channels = a.y_planes.channels;
  const int length = a.length[e];
  const float weight = weight_of_place(length);
  const float* const y = a.y + e * a.y_planes.size();
  const float* const dy = a.dy + e * a.dy_planes.size();
  float* const dx = a.dx + e * a.places * channels;
  const bool has_unit = a.norm != nullptr && a.norm[e] > 0.0f;
  float along = 0.0f;
  if (has_unit) {
    for (auto c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
      along += y[a.y_planes.at(c, 0, 0)] * dy[a.dy_planes.at(c, 0, 0)];
    along = block_sum(along, partial);
  }
  for (auto c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) {
    float d = dy[a.dy_planes.at(c, 0, 0)];
    if (has_unit) d = (d - along * y[a.y_planes.at(c, 0, 0)]) * (1.0f / a.norm[e]);
    d *= weight;
    for (int t = 0; t < length; ++t) dx[t * channels + c] = d;
  }
}

}  // namespace cudp::inline CUDP_SIMT
