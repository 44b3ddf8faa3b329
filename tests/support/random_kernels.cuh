#pragma once
// Kernels that write the words and the rounded normals of a random stream. No training launches
// them: they show what the functions that its kernels call return on a device.
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/random.cuh"
#include "kernels/random/random_block.hpp"
#include "kernels/random/rounded_normal.cuh"

namespace cudp::inline CUDP_SIMT {

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

/// Pairs of rounded normals whose rounding a kernel could not decide in double precision, in device
/// memory.
struct UndecidedPairs {
  std::uint32_t* pairs;  ///< numbers of the undecided pairs, in any order, written
  std::uint32_t* count;  ///< number of undecided pairs; 0 before the launch
};

// Writes a.out in device memory; numbers of undecided pairs are not valid. grid, block: any,
// one-dimensional; one generator block per thread, so (end - begin) / 8 threads are enough.
__global__ inline void rounded_normals_kernel(RoundedNormals a, UndecidedPairs undecided) {
  const BlockShare share = block_share(2 * a.begin, 2 * a.end);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(a.stream, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (std::int64_t p = 0; p < 4; ++p) {
      const std::int64_t pair = block / 16 * 64 + 16 * p + block % 16;
      const std::int64_t i = even_number_of(pair);
      if (i < a.end) {
        const TriedPair tried = try_rounded_pair(word + 4 * p, a.s);
        a.out[i - a.begin] = tried.k.even;
        if (i + 16 < a.end) a.out[i + 16 - a.begin] = tried.k.odd;
        if (!tried.decided)
          undecided.pairs[atomicAdd(undecided.count, 1u)] = static_cast<std::uint32_t>(pair);
      }
    }
  }
}

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {

/// Computes in multiple precision the pairs that rounded_normals_kernel could not decide, and
/// writes their numbers to args.out, in host memory. pairs [n]: numbers of these pairs.
inline void fill_undecided(const RoundedNormals& args, const std::uint32_t* pairs, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t pair = pairs[j];
    const std::int64_t even = even_number_of(pair);
    std::uint32_t block[16];
    random_block<ScalarLanes>(args.stream, static_cast<std::uint32_t>(pair / 64 * 16 + pair % 16),
                              block);
    const RoundedPair k =
        exact_rounded_pair(args.stream, pair, block + 4 * (pair % 64 / 16), args.s);
    args.out[even - args.begin] = k.even;
    if (even + 16 < args.end) args.out[even + 16 - args.begin] = k.odd;
  }
}

}  // namespace cudp
