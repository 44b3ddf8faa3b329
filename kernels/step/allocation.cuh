#pragma once
// Kernels for random allocation on a device (allocation.hpp).
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/random.cuh"
#include "kernels/step/allocation.hpp"

namespace cudp::inline CUDP_SIMT {

// Writes, for each example, the step of the epoch in which it is used. grid, block: any,
// one-dimensional; one generator block per thread, so (end - begin) / 16 threads are enough.
__global__ inline void allocate_kernel(Allocate a) {
  const BlockShare share = block_share(a.begin, a.end);
  const std::uint32_t rejected = rejected_words(a.steps);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(a.stream, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      const std::int64_t i = number_at(block, row);
      if (i < a.end)
        a.step[i - a.begin] = allocated_step(a.stream, i, word[row], a.steps, rejected);
    }
  }
}

}  // namespace cudp::inline CUDP_SIMT
