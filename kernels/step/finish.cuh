#pragma once
#include "kernels/common/dependent.cuh"
#include "kernels/random/rounded_normal.cuh"
#include "kernels/step/finish.hpp"
#include "kernels/step/sample.cuh"
#include "kernels/step/tally.cuh"
#include "kernels/step/update.cuh"

namespace cudp::inline CUDP_SIMT {

/// Releases number j of a step's noisy sum: writes it to a.released, or, if that pointer is null,
/// updates parameter j with it. units: the batch's sum plus noise, as an integer multiple of
/// `grid`. Sets sum[j] = 0 for the next step. kind: the optimizer. a: arguments of the kernel. s:
/// scalars of the step.
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

/// Adds noise to elements i and i + 16 of a step's sum, and writes the noisy elements to a.released
/// or, if that is null, updates the parameters with them. tried: the noise for both, a pair of
/// normal numbers that are rounded to integers. If their rounding is not certain (tried.decided is
/// false), the pair is only marked, and the host computes it later. even, odd: partial sums of the
/// two elements, which are added to a.sum first. kind: the optimizer. a: arguments of the kernel.
/// s: scalars of the step. grid: power of two whose multiples the sum's integers count.
template <OptimizerKind kind>
__device__ __forceinline__ void release_pair(const FinishStep& a, const StepScalars& s, double grid,
                                             std::int64_t i, const TriedPair& tried, long long even,
                                             long long odd) {
  const bool has_odd = i + 16 < a.n;
  even += static_cast<long long>(a.sum[i]);
  if (has_odd) odd += static_cast<long long>(a.sum[i + 16]);
  if (!tried.decided) {
    a.sum[i] = static_cast<FixedPoint>(even);
    if (has_odd) a.sum[i + 16] = static_cast<FixedPoint>(odd);
    const auto pair = static_cast<std::uint32_t>(rounded_pair_of(i));
    atomicAdd(a.undecided + pair / 32, 1u << pair % 32);
    atomicAdd(&a.cursor->pending, 1u);
    return;
  }
  release_number<kind>(a, s, grid, i,
                       static_cast<FixedPoint>(even) + static_cast<FixedPoint>(tried.k.even));
  if (has_odd)
    release_number<kind>(a, s, grid, i + 16,
                         static_cast<FixedPoint>(odd) + static_cast<FixedPoint>(tried.k.odd));
}

/// Adds up the batch's losses, gradient norms and counts of examples and, if the clipping norm is
/// adaptive, computes the noisy count of unclipped gradients. Called by one block only. partial:
/// shared memory, one double per warp. a: arguments of the kernel.
__device__ __forceinline__ void finish_tally(const FinishStep& a, double* partial) {
  tally_batch(a.unfinished.tally, partial);
  if (threadIdx.x != 0 || a.cursor->adapts_clip_norm == 0) return;
  ListedStep& step = a.list[a.cursor->index - 1];
  step.noisy_count = noisy_count_of(
      a.cursor->clip, halves_of(*a.unfinished.tally.total) - a.cursor->halves, step.count_noise);
}

/// Returns the random stream of the noise of the current step. a: arguments of the kernel.
__device__ __forceinline__ RandomStream noise_stream(const FinishStep& a) {
  RandomStream stream = a.noise;
  stream.step = a.cursor->step;
  return stream;
}

/// Computes one pair of rounded normals (normal random numbers with standard deviation s, rounded
/// to integers) from word [16], the words of a generator block. The words make four pairs; p (0..3)
/// is the number of the pair.
__device__ __forceinline__ TriedPair try_pair_of(const std::uint32_t (&word)[16], int p, double s) {
  std::uint32_t own[4];
  CUDP_UNROLL for (int w = 0; w < 4; ++w) {
    const std::uint32_t low = p == 0 ? word[w] : word[4 + w];
    const std::uint32_t high = p == 2 ? word[8 + w] : word[12 + w];
    own[w] = p < 2 ? low : high;
  }
  return try_rounded_pair(own, s);
}

// Finishes a step that has no partial sums of a fused kernel. kind is a.update.optimizer.kind.
// grid: any, plus one block that adds up loss, norms and counts. block: 64 threads. static smem: 32
// doubles. At least 10 blocks fit on a multiprocessor (__launch_bounds__).
template <OptimizerKind kind>
__global__ void __launch_bounds__(64, 10) finish_kernel(FinishStep a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  if (a.cursor->active == 0) return;
  unsigned blocks = gridDim.x;
  if (a.unfinished.tally.total != nullptr && blockIdx.x == --blocks) {
    finish_tally(a, &partial[0]);
    start_next_step(a.next);
    return;
  }
  const StepScalars scalars = a.cursor->scalars;
  const double grid = a.cursor->scale.grid;
  const double s = static_cast<double>(scalars.noise_std) / grid;
  const RandomStream stream = noise_stream(a);
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
      const std::int64_t i = 128 * tile + (32 * p + lane);
      if (i >= a.n) break;
      TriedPair tried{.k = {0, 0}, .decided = true};
      if (s != 0.0) tried = try_pair_of(word, p, s);
      release_pair<kind>(a, scalars, grid, i, tried, 0, 0);
    }
  }
  copy_next_batch(a.next, blockIdx.x * blockDim.x + threadIdx.x, blocks * blockDim.x);
  start_next_step(a.next);
}

/// Partial sums of two numbers of a gradient. The noise for both is one pair of rounded normals.
struct PairSum {
  long long even, odd;
};

/// Adds up numbers i and i + 16 of slabs first, first + step, first + 2 step, ... below `slabs`. A
/// slab is the partial sum of the batch's gradients by one thread block. A thread loads from 11
/// slabs at a time.
__device__ __forceinline__ PairSum sum_of_slabs(const FinishStep& a, int first, int step, int slabs,
                                                std::int64_t i) {
  constexpr int kAtOnce = 11;
  const std::int64_t to_odd = i + 16 < a.n ? 16 : 0;
  PairSum sum{0, 0};
  for (int b = first; b < slabs; b += kAtOnce * step) {
    std::int32_t even[kAtOnce];
    std::int32_t odd[kAtOnce];
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      const std::int32_t* const slab = a.unfinished.sums.slabs + (b + k * step) * a.n + i;
      const bool exists = b + k * step < slabs;
      even[k] = exists ? slab[0] : 0;
      odd[k] = exists ? slab[to_odd] : 0;
    }
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      sum.even += even[k];
      sum.odd += odd[k];
    }
  }
  return {sum.even, to_odd != 0 ? sum.odd : 0};
}

/// Members of the cursor (StepCursor, the progress of the run) on which the noise of a step
/// depends: its number, the standard deviation and the grid.
struct NoiseInputs {
  std::uint64_t step = 0;
  float std = 0.0f;
  double grid = 0.0;  ///< 0: no noise has been made

  __device__ bool operator==(const NoiseInputs& o) const {
    return step == o.step && std == o.std && grid == o.grid;
  }
};

/// Returns the noise for pair number `pair` of a step: two normal numbers, rounded to integers. in:
/// the number, the standard deviation and the grid of that step. a: arguments of the kernel.
__device__ __forceinline__ TriedPair noise_of_pair(const FinishStep& a, const NoiseInputs& in,
                                                   std::int64_t pair) {
  if (in.std == 0.0f) return {.k = {0, 0}, .decided = true};
  RandomStream stream = a.noise;
  stream.step = in.step;
  std::uint32_t word[16];
  random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(pair / 64 * 16 + pair % 16), word);
  return try_pair_of(word, static_cast<int>(pair % 64) / 16, static_cast<double>(in.std) / in.grid);
}

// Finishes a step that has partial sums of a fused kernel (slabs; FinishStep). Requires by_pairs.
// kind is a.update.optimizer.kind. grid: any, plus one block that adds up loss, norms and counts.
// block: 2 to 4 whole warps. static smem: 32 doubles, 192 integers. At least 640 threads fit on a
// multiprocessor (__launch_bounds__).
//
// A block handles 32 pairs of numbers at a time. Its first warp generates their noise. Meanwhile
// each other warp adds up a share of the slabs. The first warp then adds these sums and releases
// the numbers, while the others copy the next step's batch. Sums are integers, so the division into
// shares does not affect them.
//
// This is a dependent launch (common/dependent.cuh). Its primary is the kernel that computes the
// slabs. While the primary runs, a block generates the noise of its first pairs, in registers.
// Before wait_for_primary() a thread writes nothing to global memory, and reads only members of the
// cursor that the primary does not write. After wait_for_primary() it reads them again, and
// generates the noise again if they have changed. So noise that is used always belongs to the step
// for which the slabs were computed, which is also the step in the ledger. All other work is done
// after wait_for_primary().
template <OptimizerKind kind>
__global__ void __launch_bounds__(kSlabThreads, 640 / kSlabThreads)
    finish_slabs_kernel(FinishStep a) {
  CUDP_SHARED(double, partial, [1024 / kWarp]);
  constexpr int kMaxAdders = kSlabThreads / kWarp - 1;
  CUDP_SHARED(PairSum, shares, [kMaxAdders][kWarp]);
  unsigned blocks = gridDim.x;
  if (a.unfinished.tally.total != nullptr && blockIdx.x == --blocks) {
    wait_for_primary();
    if (read_uncached(&a.cursor->active) == 0) return;
    finish_tally(a, &partial[0]);
    start_next_step(a.next);
    return;
  }
  const int adders = static_cast<int>(blockDim.x) / kWarp - 1;
  const int adder = static_cast<int>(threadIdx.x) / kWarp - 1;
  const auto column = static_cast<int>(threadIdx.x % kWarp);
  const std::int64_t pairs = (a.n + 127) / 128 * 64;
  const auto busy_blocks = static_cast<unsigned>(pairs / kWarp < blocks ? pairs / kWarp : blocks);
  TriedPair tried{.k = {0, 0}, .decided = true};
  NoiseInputs made{};  // inputs from which `tried` was generated
  // All threads of the block iterate together, because of the barriers. The first iteration only
  // generates noise and calls wait_for_primary().
  bool has_waited = false;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kWarp; !has_waited || first < pairs;) {
    const std::int64_t pair = first + column;
    if (adder < 0 && read_uncached(&a.cursor->active) != 0) {
      const NoiseInputs now{read_uncached(&a.cursor->step),
                            read_uncached(&a.cursor->scalars.noise_std),
                            read_uncached(&a.cursor->scale.grid)};
      if (!(made == now)) {
        tried = noise_of_pair(a, now, pair);
        made = now;
      }
    }
    if (!has_waited) {
      wait_for_primary();
      if (read_uncached(&a.cursor->active) == 0) return;
      has_waited = true;
      continue;
    }
    const StepScalars scalars = a.cursor->scalars;
    const std::int64_t i = even_number_of(pair);
    if (adder >= 0) {
      PairSum sum{0, 0};
      if (i < a.n) sum = sum_of_slabs(a, adder, adders, written_slabs(a.unfinished.sums), i);
      shares[adder][column] = sum;
    }
    __syncthreads();
    if (adder < 0 && i < a.n) {
      PairSum sum{0, 0};
      CUDP_UNROLL for (int w = 0; w < kMaxAdders; ++w) {
        if (w >= adders) break;
        sum.even += shares[w][column].even;
        sum.odd += shares[w][column].odd;
      }
      release_pair<kind>(a, scalars, made.grid, i, tried, sum.even, sum.odd);
    } else if (adder >= 0 && first == std::int64_t{blockIdx.x} * kWarp) {
      copy_next_batch(a.next, (blockIdx.x * adders + adder) * kWarp + column,
                      busy_blocks * adders * kWarp);
    }
    __syncthreads();  // the next iteration overwrites `shares`
    made = {};        // the next pair needs its own noise
    first += std::int64_t{blocks} * kWarp;
  }
  start_next_step(a.next);
}

// Releases pairs that the host decided. grid, block: any, one thread per pair. smem: none.
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

/// Returns the kernel that finishes steps with this kind of optimizer. has_slabs: whether partial
/// sums of a fused kernel (slabs) must be added up first.
inline FinishKernel finish_kernel_of(OptimizerKind kind, bool has_slabs = false) {
  return with_kind(kind, [has_slabs](auto k) -> FinishKernel {
    return has_slabs ? finish_slabs_kernel<k.value> : finish_kernel<k.value>;
  });
}
inline FinishPairsKernel finish_pairs_kernel_of(OptimizerKind kind) {
  return with_kind(kind, [](auto k) -> FinishPairsKernel { return finish_pairs_kernel<k.value>; });
}

}  // namespace cudp::inline CUDP_SIMT
