#pragma once
#include "kernels/random/random.cuh"
#include "kernels/random/rounded_normal.cuh"
#include "kernels/step/release.hpp"

namespace cudp::inline CUDP_SIMT {

/// Calls body(pair, number of its even one, first words [4]) for this thread's share of numbers
/// 0 .. n - 1 of a stream.
template <class Body>
__device__ __forceinline__ void for_each_pair(const RandomStream& stream, std::int64_t n,
                                              const Body& body) {
  const BlockShare share = block_share(0, 2 * n);
  for (std::int64_t block = share.first; block < share.end; block += share.stride) {
    std::uint32_t word[16];
    random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(block), word);
    CUDP_UNROLL for (int p = 0; p < 4; ++p) {
      const std::int64_t pair = block / 16 * 64 + std::int64_t{16} * p + block % 16;
      const std::int64_t i = even_number_of(pair);
      if (i < n) body(pair, i, word + 4 * p);
    }
  }
}

// grid: any, block: 64 threads. smem: none. A multiprocessor holds 896 threads.
__global__ inline void list_undecided_kernel(ListUndecided a) {
  for (std::int64_t t = 0; t < a.steps; ++t) {
    const double s = static_cast<double>(a.scalars[t].noise_std) / a.grid;
    if (s == 0.0) continue;
    RandomStream stream = a.noise;
    stream.step = a.first + static_cast<std::uint64_t>(t);
    for_each_pair(stream, a.n, [&](std::int64_t pair, std::int64_t, const std::uint32_t* word) {
      if (try_rounded_pair(word, s).decided) return;
      const std::uint32_t place = atomicAdd(a.count, 1u);
      if (place < a.capacity)
        a.list[place] = {stream.step,
                         static_cast<std::uint32_t>(pair),
                         {word[0], word[1], word[2], word[3]},
                         {0, 0}};
    });
  }
}

// grid: any, block: 64 threads. smem: none. A multiprocessor holds 1,152 threads.
__global__ inline void release_kernel(ReleaseFixed a) {
  const double s = static_cast<double>(a.scalars->noise_std) / a.grid;
  const auto release = [&](std::int64_t j, std::int64_t k) {
    if (j >= a.n) return;
    const FixedPoint sum = a.sum[j] + static_cast<FixedPoint>(k);
    a.released[j] = static_cast<float>(static_cast<double>(static_cast<long long>(sum)) * a.grid);
    a.sum[j] = 0;
  };
  RandomStream stream = a.noise;
  stream.step = *a.step;
  for_each_pair(stream, a.n, [&](std::int64_t pair, std::int64_t i, const std::uint32_t* word) {
    RoundedPair k{0, 0};
    if (s != 0.0) {
      const TriedPair tried = try_rounded_pair(word, s);
      k = tried.k;
      if (!tried.decided)
        for (std::uint32_t p = 0; p < *a.pair_count; ++p)
          if (a.pairs[p].step == stream.step && a.pairs[p].pair == pair) k = a.pairs[p].k;
    }
    release(i, k.even);
    release(i + 16, k.odd);
  });
}

}  // namespace cudp::inline CUDP_SIMT
