#pragma once
#include "kernels/common/fill.hpp"
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

// grid, block: any, a thread a number. smem: none.
__global__ inline void fill_rows_kernel(FillRows a) {
  for_each_number(static_cast<std::int64_t>(a.rows) * a.columns,
                  [&](std::int64_t i) { a.to[i] = a.row[i % a.columns]; });
}

// grid, block: any, a thread a number. smem: none.
__global__ inline void copy_rows_kernel(CopyRows a) {
  for_each_number(
      static_cast<std::int64_t>(live_examples(a.batch)) * a.columns,
      [&](std::int64_t i) { a.to[i / a.columns * a.to_stride + i % a.columns] = a.rows[i]; });
}

}  // namespace cudp::inline CUDP_SIMT
