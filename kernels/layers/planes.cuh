#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/epilogue.cuh"
#include "kernels/layers/planes.hpp"

namespace cudp::inline CUDP_SIMT {

// Copies images from one layout to another. grid: pixels, examples. block: any. smem: none.
__global__ inline void copy_planes_kernel(device::CopyPlanes a) {
  store_finished(a.epilogue, [&](const auto& finish) {
    for_each_pixel(a.batch, a.to_planes.pixels(), [&](int e, int i) {
      const std::int64_t example = e;
      const Pixel at = a.to_planes.pixel(i);
      float v = a.from[example * a.from_planes.size() + a.from_planes.at(at)];
      if (a.bias != nullptr) v += a.bias[at.channel];
      a.to[example * a.to_planes.size() + a.to_planes.at(at)] = finish(v, [] { return 0.0f; });
    });
  });
}

}  // namespace cudp::inline CUDP_SIMT
