#pragma once
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/simt.cuh"

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
__global__ inline void fixed_to_float_kernel(FixedToFloat a) {
  for_each_number(a.n, [&](std::int64_t j) {
    a.sum[j] = static_cast<float>(static_cast<double>(static_cast<long long>(a.fixed[j])) * a.grid);
    a.fixed[j] = 0;
  });
}

}  // namespace cudp::inline CUDP_SIMT
