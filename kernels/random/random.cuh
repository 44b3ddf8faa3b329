#pragma once
// How the threads of a kernel divide the words of a random stream (random.hpp) among them.
#include <cstdint>

#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// The generator blocks that this thread computes when numbers begin .. end - 1 of a random stream
/// are generated: blocks first, first + stride, first + 2 stride, ... below `end`. A generator
/// block has 16 words. begin is a multiple of 256. Neighbouring threads compute neighbouring
/// blocks, because 16 of them then write 16 neighbouring numbers of the stream (RandomStream).
struct BlockShare {
  std::int64_t first;
  std::int64_t end;
  std::int64_t stride;
};
__device__ __forceinline__ BlockShare block_share(std::int64_t begin, std::int64_t end) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  return {begin / 16 + thread, (end + 255) / 256 * 16, std::int64_t{gridDim.x} * blockDim.x};
}

/// Returns the index in the random stream of word number `row` (0 to 15) of generator block number
/// `block`.
__device__ __forceinline__ std::int64_t number_at(std::int64_t block, std::int64_t row) {
  return block / 16 * 256 + 16 * row + block % 16;
}

}  // namespace cudp::inline CUDP_SIMT
