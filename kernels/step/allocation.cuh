#pragma once
// Kernels for random allocation on a device (allocation.hpp).
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/random.cuh"
#include "kernels/random/random_block.hpp"
#include "kernels/step/allocation.hpp"
#include "kernels/step/sample.hpp"

namespace cudp::inline CUDP_SIMT {

// Writes, for each example, the step of its epoch in which it is used, in gridDim.y consecutive
// epochs: StoredEpochs::step, and to *range the steps of these epochs. The first epoch is that of
// a.stream and a multiple of gridDim.y. grid: any, y epochs. block: any, one-dimensional; one
// generator block per thread, so (end - begin) / 16 threads are enough.
__global__ inline void allocate_kernel(Allocate a, StepRange* range) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
    *range = {a.stream.step * a.steps, (a.stream.step + gridDim.y) * a.steps};
  a.stream.step += blockIdx.y;
  a.step += std::int64_t{blockIdx.y} * ((a.end - a.begin + 255) / 256 * 256);
  const BlockShare share = block_share(a.begin, a.end);
  const std::uint32_t rejected = rejected_words(a.steps);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(a.stream, static_cast<std::uint32_t>(block), word);
    unsigned redrawn = 0;  // bit r: the word of row r is rejected
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      const std::int64_t i = number_at(block, row);
      const bool is_used = i < a.end && (a.index == nullptr || a.index[i - a.begin] != kHeldOut);
      a.step[i - a.begin] = is_used ? selected_step(word[row], a.steps) : kHeldOut;
      redrawn |= is_used && is_rejected(word[row], a.steps, rejected) ? 1u << row : 0u;
    }
    for (; redrawn != 0; redrawn &= redrawn - 1) {
      const std::int64_t i = number_at(block, __ffs(static_cast<int>(redrawn)) - 1);
      a.step[i - a.begin] = step_of_further_words(a.stream, i, a.steps, rejected);
    }
  }
}

}  // namespace cudp::inline CUDP_SIMT
