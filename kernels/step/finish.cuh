#pragma once
#include "kernels/random/rounded_normal.cuh"
#include "kernels/step/finish.hpp"
#include "kernels/step/tally.cuh"
#include "kernels/step/update.cuh"

namespace cudp::inline CUDP_SIMT {

/// Releases number j of the step. `units`: its sum and noise.
template <OptimizerKind kind>
__device__ __forceinline__ void release_number(const FinishStep& a, const StepScalars& s,
                                               double grid, std::int64_t j, FixedPoint units) {
  const auto released =
      static_cast<float>(static_cast<double>(static_cast<long long>(units)) * grid);
  a.sum[j] = 0;
  if (a.released != nullptr)
    a.released[j] = released;
  else
    update_number<kind>(a.update, s, j, released);
}

// grid: any, plus one block for the tally. block: 64 threads. static smem: 32 doubles. A
// multiprocessor holds 640 threads. kind is a.update.optimizer.kind.
template <OptimizerKind kind>
__global__ void __launch_bounds__(64, 10) finish_kernel(FinishStep a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  if (a.cursor->active == 0) return;
  unsigned blocks = gridDim.x;
  if (a.left.tally.total != nullptr && blockIdx.x == --blocks) {
    tally_batch(a.left.tally, &partial[0]);
    if (threadIdx.x == 0 && a.cursor->follows != 0) {
      ListedStep& step = a.list[a.cursor->index - 1];
      step.noisy_count = noisy_count_of(
          a.cursor->clip, halves_of(*a.left.tally.total) - a.cursor->halves, step.count_noise);
    }
    return;
  }
  const StepScalars scalars = a.cursor->scalars;
  const double grid = a.cursor->scale.grid;
  const double s = static_cast<double>(scalars.noise_std) / grid;
  RandomStream stream = a.noise;
  stream.step = a.cursor->step;
  const int slabs = a.left.sums.slabs != nullptr ? written_slabs(a.left.sums) : 0;
  const std::int64_t items = (a.n + 127) / 128 * (a.by_pairs ? 64 : 16);
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items;
       item += std::int64_t{blocks} * blockDim.x) {
    const std::int64_t tile = item / (a.by_pairs ? 64 : 16);
    const auto lane = static_cast<int>(item % 16);
    const int first = a.by_pairs ? static_cast<int>(item % 64) / 16 : 0;
    std::uint32_t word[16];
    if (s != 0.0)
      random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(16 * tile + lane), word);
    for (int p = first; p < (a.by_pairs ? first + 1 : 4); ++p) {
      const std::int64_t i = 128 * tile + 32 * p + lane;
      if (i >= a.n) break;
      const bool has_odd = i + 16 < a.n;
      auto even = static_cast<long long>(a.sum[i]);
      auto odd = has_odd ? static_cast<long long>(a.sum[i + 16]) : 0;
      for (int b = 0; b < slabs; ++b) {
        const std::int32_t* const slab = a.left.sums.slabs + b * a.n + i;
        even += slab[0];
        odd += has_odd ? slab[16] : 0;
      }
      RoundedPair k{0, 0};
      if (s != 0.0) {
        std::uint32_t own[4];
        CUDP_UNROLL for (int w = 0; w < 4; ++w) {
          const std::uint32_t low = p == 0 ? word[w] : word[4 + w];
          const std::uint32_t high = p == 2 ? word[8 + w] : word[12 + w];
          own[w] = p < 2 ? low : high;
        }
        const TriedPair tried = try_rounded_pair(own, s);
        if (!tried.decided) {
          a.sum[i] = static_cast<FixedPoint>(even);
          if (has_odd) a.sum[i + 16] = static_cast<FixedPoint>(odd);
          const auto pair = static_cast<std::uint32_t>(64 * tile + 16 * p + lane);
          atomicAdd(a.undecided + pair / 32, 1u << pair % 32);
          atomicAdd(&a.cursor->pending, 1u);
          continue;
        }
        k = tried.k;
      }
      release_number<kind>(a, scalars, grid, i,
                           static_cast<FixedPoint>(even) + static_cast<FixedPoint>(k.even));
      if (has_odd)
        release_number<kind>(a, scalars, grid, i + 16,
                             static_cast<FixedPoint>(odd) + static_cast<FixedPoint>(k.odd));
    }
  }
}

// grid, block: any, one thread per pair. smem: none.
template <OptimizerKind kind>
__global__ void finish_pairs_kernel(FinishPairs a) {
  const FinishStep& step = a.step;
  const StepScalars scalars = step.cursor->scalars;
  const double grid = step.cursor->scale.grid;
  for_each_number(a.count, [&](std::int64_t at) {
    const DecidedPair p = a.pairs[at];
    const std::uint32_t bit = 1u << p.pair % 32;
    std::uint32_t* const bits = step.undecided + p.pair / 32;
    if (p.step != step.cursor->step || (atomicAdd(bits, 0u) & bit) == 0) return;
    atomicAdd(bits, 0u - bit);
    const std::int64_t i = even_number_of(p.pair);
    release_number<kind>(step, scalars, grid, i, step.sum[i] + static_cast<FixedPoint>(p.k.even));
    if (i + 16 < step.n)
      release_number<kind>(step, scalars, grid, i + 16,
                           step.sum[i + 16] + static_cast<FixedPoint>(p.k.odd));
    atomicAdd(&step.cursor->pending, 0u - 1u);
  });
}

using FinishKernel = void (*)(FinishStep);
using FinishPairsKernel = void (*)(FinishPairs);

/// Kernels for a kind of optimizer.
inline FinishKernel finish_kernel_of(OptimizerKind kind) {
  return with_kind(kind, [](auto k) -> FinishKernel { return finish_kernel<k.value>; });
}
inline FinishPairsKernel finish_pairs_kernel_of(OptimizerKind kind) {
  return with_kind(kind, [](auto k) -> FinishPairsKernel { return finish_pairs_kernel<k.value>; });
}

}  // namespace cudp::inline CUDP_SIMT
