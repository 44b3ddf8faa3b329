#pragma once
#include "kernels/common/copy_rows.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

// Copies one row per example. grid: columns, examples. block: any. smem: none.
__global__ inline void copy_rows_kernel(CopyRows a) {
  const int live = live_examples(a.batch);
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (std::int64_t e = blockIdx.y; e < live; e += gridDim.y)
    for (auto c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); c < a.columns; c += step)
      a.to[e * a.to_stride + c] = a.rows[e * a.columns + c];
}

}  // namespace cudp::inline CUDP_SIMT
