#pragma once
// Kernels of linear models. launch_shape() launches them in blocks of 256 threads. The registers of
// a multiprocessor suffice for six blocks at a time, and for five of linear_sum_kernel.
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/linear/linear_model.hpp"
#include "kernels/linear/linear_model_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// Returns v inverse_grid, rounded to the nearest integer, ties to even: v as a number of grid
/// steps. A grid step, 1 / inverse_grid, is a power of two. Requires that the result is below 2^31.
__device__ __forceinline__ int to_units(float v, float inverse_grid) {
  return __float2int_rn(v * inverse_grid);
}

// Computes examples' scores. grid, block: any, one thread per example. smem: none.
__global__ inline void linear_scores_kernel(LinearScores a) {
  for_each_number((a.end - a.begin) * kTile, [&](std::int64_t i) {
    const std::int64_t tile = a.begin + i / kTile;
    const float* const x = a.features + tile * a.d * kTile + i % kTile;
    const auto feature = [x](int j) { return x[std::int64_t{j} * kTile]; };
    a.scores[tile * kTile + i % kTile] = linear_score<float>(feature, a.w, a.d);
  });
}

// Computes clipped derivatives. grid, block: any, one thread per example. smem: none.
__global__ inline void linear_derivatives_kernel(LinearDerivatives a) {
  for_each_number(a.n, [&](std::int64_t i) {
    const float score = a.scores[i];
    const float sign = a.signs[i];
    const float norm = a.norms[i];
    a.derivatives[i] =
        a.loss == Loss::hinge
            ? clipped_derivative<HingeMargin>(score, sign, norm, a.clip_norm, a.weights)
            : clipped_derivative<LogisticMargin>(score, sign, norm, a.clip_norm, a.weights);
  });
}

// Adds clipped gradients. grid, block: any, one-dimensional, whole warps. smem: none. A warp reads
// 8 features of a tile at once, 512 bytes: four lanes per feature, four examples per lane.
__global__ inline void linear_sum_kernel(LinearSum a) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const std::int64_t strips = (a.d + 7) / 8;
  const std::int64_t items = (a.tiles + kSumTiles - 1) / kSumTiles * strips;
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.x / kWarp;
  for (std::int64_t item = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
       item < items; item += warps) {
    const std::int64_t j = item % strips * 8 + lane / 4;
    const std::int64_t first = item / strips * kSumTiles;
    const std::int64_t end = first + kSumTiles < a.tiles ? first + kSumTiles : a.tiles;
    const std::int64_t part = std::int64_t{lane % 4} * 4;
    int sum = 0;
    if (j < a.d)
      for (std::int64_t t = first; t < end; ++t) {
        const Four x = load_four(a.features + (t * a.d + j) * kTile + part);
        const Four derivative = load_four(a.derivatives + t * kTile + part);
        CUDP_UNROLL for (int i = 0; i < 4; ++i) {
          sum += to_units(derivative.v[i] * x.v[i], a.inverse_grid);
        }
      }
    long long total = sum;  // becomes the total of four lanes
    total += __shfl_xor_sync(kFullWarp, total, 1);
    total += __shfl_xor_sync(kFullWarp, total, 2);
    if (lane % 4 == 0 && j < a.d) atomicAdd(a.total + j, static_cast<FixedPoint>(total));
  }
}

// Adds clipped losses (LinearLossSums). grid: any x count. block: any, one-dimensional, whole
// warps. smem: 256 bytes.
__global__ inline void linear_losses_kernel(LinearLossSums a) {
  CUDP_SHARED(long long, partial, [1024 / kWarp]);
  const auto k = static_cast<int>(blockIdx.y);
  const float step = a.steps[k];
  long long sum = 0;
  for_each_number(a.n, [&](std::int64_t i) {
    const float score = a.scores[i] - step * a.along[i];
    const float loss = a.loss == Loss::hinge
                           ? clipped_loss<HingeMargin>(score, a.signs[i], a.max_loss, a.weights)
                           : clipped_loss<LogisticMargin>(score, a.signs[i], a.max_loss, a.weights);
    sum += to_units(loss, a.inverse_grid);
  });
  sum = block_sum(sum, &partial[0]);
  if (threadIdx.x == 0) atomicAdd(a.total + k, static_cast<FixedPoint>(sum));
}

// Copies examples to new tiles. grid, block: any, one thread per number. smem: none.
__global__ inline void linear_gather_kernel(LinearGather a) {
  const std::int64_t tiles = (a.count + kTile - 1) / kTile;
  for_each_number(tiles * a.d * kTile, [&](std::int64_t i) {
    const std::int64_t tile = i / kTile / a.d;
    const std::int64_t j = i / kTile % a.d;
    const std::int64_t slot = tile * kTile + i % kTile;
    const bool there = slot < a.count;
    const std::int64_t from = there ? a.examples[slot] : 0;
    a.to_features[i] = there ? a.features[(from / kTile * a.d + j) * kTile + from % kTile] : 0.0f;
    if (j > 0) return;
    a.to_signs[slot] = there ? a.signs[from] : 0.0f;
    a.to_norms[slot] = there ? a.norms[from] : 1.0f;
  });
}

}  // namespace cudp::inline CUDP_SIMT
