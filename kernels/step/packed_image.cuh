#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/half_core.cuh"
#include "kernels/step/packed_image.hpp"

namespace cudp::inline CUDP_SIMT {

/// Writes parameter j, whose value is v, to `image`, the packed copy of the parameters, in the
/// order and number format in which a fused kernel reads them.
__device__ __forceinline__ void pack_number(const PackedImage& image, std::int64_t j, float v) {
  const PackedPlace place = image.places[j];
  unsigned char* const to = image.bytes + place.byte();
  if (place.is_float()) {
    *reinterpret_cast<float*>(to) = v;
    return;
  }
  const SplitHalves parts = split_halves(v, 0.0f);
  *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(parts.high);
  if (place.has_low())
    *reinterpret_cast<std::uint16_t*>(to + image.low) = static_cast<std::uint16_t>(parts.low);
}

// Packs all parameters. grid, block: any, one thread per parameter. smem: none.
__global__ inline void pack_kernel(PackParameters a) {
  for_each_number(a.n, [&](std::int64_t j) { pack_number(a.image, j, a.parameters[j]); });
}

}  // namespace cudp::inline CUDP_SIMT
