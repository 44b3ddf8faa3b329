#pragma once
// Kernels that write the words or normal numbers of a random stream (random.hpp). Tests and the
// initial weights use them; the sampler and the update generate their own numbers where they need
// them.
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/normal_math.hpp"
#include "kernels/random/random_block.hpp"

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

// Writes words[i - begin] = word i of the stream, begin <= i < end. grid, block: any,
// one-dimensional; one generator block per thread, so (end - begin) / 16 threads are enough.
__global__ inline void fill_words_kernel(RandomStream stream, std::int64_t begin, std::int64_t end,
                                         std::uint32_t* words) {
  const BlockShare share = block_share(begin, end);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      const std::int64_t i = number_at(block, row);
      if (i < end) words[i - begin] = word[row];
    }
  }
}

/// Calls body(i, x) for this thread's share of the indices begin <= i < end; x is normal number i
/// of the stream. begin is a multiple of 256.
template <class Body>
__device__ __forceinline__ void for_each_normal(const RandomStream& stream, std::int64_t begin,
                                                std::int64_t end, const Body& body) {
  const BlockShare share = block_share(begin, end);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (int row = 0; row < 16; row += 2) {
      float z[2];
      box_muller<ScalarLanes>(word[row], word[row + 1], z[0], z[1]);
      CUDP_UNROLL for (int k = 0; k < 2; ++k) {
        const std::int64_t i = number_at(block, row + k);
        if (i < end) body(i, z[k]);
      }
    }
  }
}

// Writes normals[i - begin] = normal number i of the stream. grid, block: any, one-dimensional;
// (end - begin) / 16 threads are enough.
__global__ inline void fill_normals_kernel(RandomStream stream, std::int64_t begin,
                                           std::int64_t end, float* normals) {
  for_each_normal(stream, begin, end, [&](std::int64_t i, float z) { normals[i - begin] = z; });
}

}  // namespace cudp::inline CUDP_SIMT
