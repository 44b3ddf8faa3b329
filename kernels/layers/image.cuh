#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/image.hpp"

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

// grid, block: any. smem: none.
__global__ inline void load_kernel(BatchLoad a) {
  const int pixels = a.planes.pixels();
  for_each_pixel(a.batch, pixels, [&](int e, int i) {
    const int number = a.batch.first + e;
    const std::int64_t from =
        a.examples != nullptr ? static_cast<std::int64_t>(a.examples[number]) : number;
    const float v = a.bytes != nullptr
                        ? a.scale * static_cast<float>(a.bytes[from * pixels + i]) + a.shift
                        : a.floats[from * pixels + i];
    a.x[static_cast<std::int64_t>(e) * a.planes.size() + a.planes.pixel_offset(i)] = v;
    if (i == 0) a.x_label[e] = a.labels[from];
  });
}

}  // namespace cudp::inline CUDP_SIMT
