#pragma once
#include "kernels/common/fill.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Calls body(row, column) for all of so many rows: rows down the grid, columns across.
template <class Body>
__device__ __forceinline__ void for_each_in_rows(int rows, int columns, const Body& body) {
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    for (auto c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); c < columns; c += step)
      body(row, c);
}

// grid: columns, rows. block: any. smem: none.
__global__ inline void fill_rows_kernel(FillRows a) {
  for_each_in_rows(a.rows, a.columns,
                   [&](std::int64_t row, int c) { a.to[row * a.columns + c] = a.row[c]; });
}

// grid: columns, examples. block: any. smem: none.
__global__ inline void copy_rows_kernel(CopyRows a) {
  for_each_in_rows(live_examples(a.batch), a.columns, [&](std::int64_t row, int c) {
    a.to[row * a.to_stride + c] = a.rows[row * a.columns + c];
  });
}

}  // namespace cudp::inline CUDP_SIMT
