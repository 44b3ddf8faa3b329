#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/contribution/coordinates.hpp"

namespace cudp::inline CUDP_SIMT {

// Computes partial sums of s_j and m_j^2 / s_j over the coordinates j (CoordinateSums). grid: any.
// block: <= 1024, whole warps. static smem: a double per warp.
__global__ inline void coordinate_sums_kernel(CoordinateSums a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  if (*a.active == 0) return;
  double deviations = 0.0;
  double ratios = 0.0;
  for_each_number(a.n, [&](std::int64_t j) {
    const double m = a.mean[j];
    const double s = a.deviation[j];
    deviations += s;
    ratios += m * m / s;
  });
  deviations = block_sum(deviations, &partial[0]);
  ratios = next_block_sum(ratios, &partial[0]);
  if (threadIdx.x != 0) return;
  double* const parts = a.parts + std::int64_t{2} * blockIdx.x;
  parts[0] = deviations;
  parts[1] = ratios;
}

// Computes the scale and the centre of every coordinate (CoordinateArrays). grid: any. block: whole
// warps, one thread per number. smem: none.
__global__ inline void coordinate_arrays_kernel(CoordinateArrays a) {
  if (*a.active == 0) return;
  // Every warp adds the partial sums in the same order, so that all warps get the same bits.
  double deviations = 0.0;
  double ratios = 0.0;
  for (std::int64_t i = threadIdx.x % kWarp; i < a.count; i += kWarp) {
    deviations += a.parts[2 * i];
    ratios += a.parts[2 * i + 1];
  }
  const CoordinateScale scale = coordinate_scale(warp_sum(deviations), warp_sum(ratios));
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.scale = scale;
  for_each_number(a.n, [&](std::int64_t j) {
    const float centre = scale.shrink * a.mean[j];
    const float inverse = 1.0f / (sqrtf(a.deviation[j]) * scale.root);
    a.centre[j] = centre;
    a.inverse[j] = inverse;
    a.square[j] = inverse * inverse;
    a.product[j] = centre * (inverse * inverse);
  });
}

// Computes the squared norm of centre / scale for each dense layer (LayerShifts). grid: layers.
// block: <= 1024, whole warps. static smem: one double per warp.
__global__ inline void layer_shifts_kernel(LayerShifts a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  const LayerShift& layer = a.layer[blockIdx.x];
  const float* const centre = a.centre + layer.first;
  const float* const square = a.square + layer.first;
  double sum = 0.0;
  for (std::int64_t j = threadIdx.x; j < layer.n; j += blockDim.x) {
    const double m = centre[j];
    sum += m * m * static_cast<double>(square[j]);
  }
  sum = block_sum(sum, &partial[0]);
  if (threadIdx.x == 0) a.shifts[layer.group] = sum;
}

// Squares each number. grid, block: any, one thread per number. smem: none.
__global__ inline void square_rows_kernel(SquareRows a) {
  for_each_number(a.n, [&](std::int64_t i) { a.y[i] = a.x[i] * a.x[i]; });
}

// Computes the squared norm of (gradient - m) / scale, coordinate by coordinate, of a dense layer
// for each example (AdaCliP; DenseTransformedNorm has the formula). grid: any. block: whole warps,
// one warp per example. smem: none.
__global__ inline void dense_transformed_norm_kernel(DenseTransformedNorm a) {
  const int live = live_examples(a.batch);
  const auto warps = static_cast<int>(gridDim.x * blockDim.x / kWarp);
  for (auto e = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarp); e < live;
       e += warps) {
    const std::int64_t row = static_cast<std::int64_t>(e) * a.outputs;
    double squares = 0.0;
    double products = 0.0;
    for (int j = static_cast<int>(threadIdx.x % kWarp); j < a.outputs; j += kWarp) {
      const double dy = a.dy[row + j];
      squares += dy * dy * static_cast<double>(a.u[row + j]);
      products += dy * static_cast<double>(a.v[row + j]);
    }
    squares = warp_sum(squares);
    products = warp_sum(products);
    if (threadIdx.x % kWarp == 0)
      a.parts[e] =
          dense_square(squares, products, *a.shift, dense_square_error(a.inputs, a.outputs));
  }
}

}  // namespace cudp::inline CUDP_SIMT
