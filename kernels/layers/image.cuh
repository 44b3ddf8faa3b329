#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/image.hpp"

namespace cudp::inline CUDP_SIMT {

// grid, block: any. smem: none.
__global__ inline void load_kernel(device::Load a) {
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
