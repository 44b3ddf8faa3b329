#pragma once
#include "kernels/batch_dense.hpp"
#include "kernels/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Calls body(i) for 0 <= i < n, spread over the grid.
template <class Body>
__device__ __forceinline__ void for_each_number(std::int64_t n, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step)
    body(i);
}

// grid, block: any, a thread a number. smem: none.
__global__ inline void fill_rows_kernel(FillRows a) {
  for_each_number(static_cast<std::int64_t>(a.rows) * a.columns,
                  [&](std::int64_t i) { a.to[i] = a.row[i % a.columns]; });
}

// grid: any, a block an example. block: any. smem: none.
__global__ inline void weigh_rows_kernel(WeighRows a) {
  const int live = live_examples(a.batch);
  for (auto e = static_cast<std::int64_t>(blockIdx.x); e < a.rows; e += gridDim.x) {
    const float factor = e < live ? a.factors[e * a.factor_stride] : 0.0f;
    float* const dy = a.dy + e * a.outputs;
    for (unsigned i = threadIdx.x; i < static_cast<unsigned>(a.outputs); i += blockDim.x)
      dy[i] = factor != 0.0f ? dy[i] * factor : 0.0f;
    if (factor != 0.0f) continue;
    float* const x = a.x + e * a.inputs;
    for (unsigned i = threadIdx.x; i < static_cast<unsigned>(a.inputs); i += blockDim.x)
      x[i] = 0.0f;
  }
}

// grid, block: any, a thread a number; no other kernel adds at the same time. smem: none.
__global__ inline void add_to_fixed_kernel(AddToFixed a) {
  for_each_number(a.n, [&](std::int64_t j) { a.sum[j] += to_fixed(a.v[j], a.inverse_grid); });
}

// grid, block: any, a thread a number. smem: none.
__global__ inline void settle_fixed_kernel(SettleFixed a) {
  for_each_number(a.n, [&](std::int64_t j) {
    a.sum[j] = static_cast<float>(static_cast<double>(static_cast<long long>(a.fixed[j])) * a.grid);
    a.fixed[j] = 0;
  });
}

}  // namespace cudp::inline CUDP_SIMT
