#pragma once
#include <cstdint>

#include "kernels/common/lanes.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Returns the index in the data set of the micro-batch's e-th example. examples: indices in the
/// data set of all examples of the batch; null: the batch is examples 0, 1, ... of the data set.
__device__ __forceinline__ std::int64_t number_in_set(const Batch& batch,
                                                      const std::uint32_t* examples, int e) {
  const int number = batch.first + e;
  return examples != nullptr ? static_cast<std::int64_t>(examples[number]) : number;
}

/// Calls body(example, pixel) for every pixel of every example of the micro-batch. pixels: number
/// of pixels of an example. The y dimension of the grid is distributed over examples, the x
/// dimension over an example's pixels; the kernel must be launched with pixel_shape().
template <class Body>
__device__ __forceinline__ void for_each_pixel(const Batch& batch, int pixels, const Body& body) {
  const int live = live_examples(batch);
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (auto e = static_cast<int>(blockIdx.y); e < live; e += static_cast<int>(gridDim.y)) {
    CUDP_UNROLL_BY(1)
    for (auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < pixels; i += step) {
      body(e, i);
    }
  }
}

/// Calls body(example) for every example of the micro-batch (live_examples() of them), distributed
/// over all threads of the launch.
template <class Body>
__device__ __forceinline__ void for_each_example(const Batch& batch, const Body& body) {
  const int live = live_examples(batch);
  const auto step = static_cast<int>(gridDim.x * blockDim.x);
  for (auto e = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); e < live; e += step)
    body(e);
}

}  // namespace cudp::inline CUDP_SIMT
