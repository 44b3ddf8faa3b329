#pragma once
#include "kernels/common/coded_rows.cuh"
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/image.hpp"

namespace cudp::inline CUDP_SIMT {

/// Returns, as a float, the i-th of the `pixels` numbers (all channels) of an example: a byte
/// becomes a.scale * byte + a.shift, a number of a coded row is decoded. number: index of the
/// example in the data set. a: arguments of the kernel.
__device__ __forceinline__ float loaded_pixel(const device::Load& a, std::int64_t number,
                                              int pixels, int i) {
  if (a.coded.rows != nullptr) return CodedRecord(a.coded, number).feature(i);
  const std::int64_t at = number * pixels + i;
  return a.bytes != nullptr ? a.scale * static_cast<float>(a.bytes[at]) + a.shift : a.floats[at];
}

// Loads examples and labels from the data set. grid: pixels, examples. block: any. smem: none.
__global__ inline void load_kernel(device::Load a) {
  const int pixels = a.planes.pixels();
  for_each_pixel(a.batch, pixels, [&](int e, int i) {
    const std::int64_t from = number_in_set(a.batch, a.examples, e);
    a.x[static_cast<std::int64_t>(e) * a.planes.size() + a.planes.pixel_offset(i)] =
        stored(loaded_pixel(a, from, pixels, i), a.x_as);
    if (i == 0) a.x_label[e] = a.labels[from];
  });
}

}  // namespace cudp::inline CUDP_SIMT
