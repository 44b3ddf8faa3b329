#pragma once
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Calls body(example, pixel) for every pixel of every living example, spread over the grid.
template <class Body>
__device__ __forceinline__ void for_each_pixel(const Batch& batch, int pixels, const Body& body) {
  const std::int64_t end = static_cast<std::int64_t>(live_examples(batch)) * pixels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
       i += step) {
    const auto example = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(pixels);
    body(static_cast<int>(example), static_cast<int>(i) - static_cast<int>(example) * pixels);
  }
}

}  // namespace cudp::inline CUDP_SIMT
