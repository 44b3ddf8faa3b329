#pragma once
// Poisson sampling and random allocation (sample.hpp) in two kernels on one stream. The first
// writes one bit per example (flag: drawn or not), and the number of drawn examples of each tile.
// The second writes the drawn indices at their offsets, after those of earlier tiles. There are no
// atomics: the batch is ascending for any launch shape. The host need not read any result. In a
// recorded step the second kernel also starts the step. A step whose batch was drawn ahead is
// started by the last kernel of the step before (finish.cuh), or, if there is no such step, by
// begin_step_kernel.
#include <cstdint>

#include "kernels/common/simt.cuh"
#include "kernels/random/random_block.hpp"
#include "kernels/step/sample.hpp"

namespace cudp::inline CUDP_SIMT {

__device__ __forceinline__ std::int64_t sample_tiles(const SampleArgs& a) {
  return (a.end - a.begin + 255) / 256;
}

/// Selects the step for which this block draws a batch: the blockIdx.y-th of the consecutive steps
/// of a launch. On entry a and `space` have the step number and pointers of the first step; changes
/// them to those of this block's step.
__device__ __forceinline__ void choose_step(SampleArgs& a, SampleSpace& space) {
  const std::int64_t step = blockIdx.y;
  const std::int64_t tiles = sample_tiles(a);
  a.stream.step += blockIdx.y;
  a.drawn += step * space.list_size;
  space.flags += step * 16 * tiles;
  space.counts += step * (tiles + 1);
  space.count += step;
}

/// Returns the index in the training set of the example with number `number` in the random stream,
/// or kHeldOut if that example is held out and never drawn. kNumbered: whether any examples are
/// held out; the array a.index then has the indices.
template <bool kNumbered>
__device__ __forceinline__ std::uint32_t index_of(const SampleArgs& a, std::int64_t number) {
  if constexpr (kNumbered) return a.index[number - a.first];
  return static_cast<std::uint32_t>(number - a.first);
}

/// Returns whether Poisson sampling draws an example whose upper 16 random bits equal those of the
/// threshold: generates its lower 16 bits and compares them. a: arguments of the kernel.
__device__ __forceinline__ bool drawn_by_lower_bits(const SampleArgs& a, std::int64_t example) {
  std::uint32_t word[16];
  const auto block =
      static_cast<std::uint32_t>((kLowerBits + example / kSampleTile * 256) / 16 + example % 16);
  random_block<ScalarLanes>(a.stream, block, word);
  // All rows are read with a mask: an array with an index known only at run time would not stay in
  // registers.
  std::uint32_t found = 0;
  CUDP_UNROLL for (int row = 0; row < 16; ++row) {
    found |= word[row] & (row == example % 256 / 16 ? 0xffffffffu : 0u);
  }
  const std::uint32_t half = example % kSampleTile < 256 ? found & 0xffff : found >> 16;
  return half < (a.threshold & 0xffff);
}

/// Draws 16 examples by Poisson sampling: bit r of the result is 1 if example first + 16 r is
/// drawn. half(r) returns the upper 16 random bits of that example. a: arguments of the kernel.
/// Half: type of the function half().
template <class Half>
__device__ __forceinline__ unsigned drawn_of_column(const SampleArgs& a, std::int64_t first,
                                                    Half&& half) {
  const auto limit = static_cast<std::uint32_t>(a.threshold >> 16);
  unsigned below = 0;
  unsigned equal = 0;
  CUDP_UNROLL for (int row = 0; row < 16; ++row) {
    below |= half(row) < limit ? 1u << row : 0u;
    equal |= half(row) == limit ? 1u << row : 0u;
  }
  for (; equal != 0; equal &= equal - 1) {
    const int row = __ffs(static_cast<int>(equal)) - 1;
    if (drawn_by_lower_bits(a, first + std::int64_t{16} * row)) below |= 1u << row;
  }
  return below;
}

/// First kernel of Poisson and importance sampling: writes one bit per example, whether it is
/// drawn, and the number of drawn examples in each tile of 256. kNumbered: whether examples are
/// held out, so that the array a.index is given. space: scratch memory and result.
template <bool kNumbered>
__device__ __forceinline__ void write_flags(SampleArgs a, SampleSpace space) {
  choose_step(a, space);
  if (space.cursor != nullptr) {
    if (halts(*space.cursor)) return;
    a.stream.step = space.cursor->first + space.cursor->index;
    a.rule = space.cursor->candidates;
  }
  const bool is_poisson = a.norms == nullptr;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 16);
  const int upper = static_cast<int>(threadIdx.x % kWarp / 16);
  const std::int64_t tiles = sample_tiles(a);
  // A warp processes four tiles at a time, two per half-warp. All its lanes iterate together,
  // because __ballot_sync() needs the whole warp. So the tiles of the second half-warp may not
  // exist.
  const std::int64_t warp = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.x / kWarp;
  for (std::int64_t four = warp; 4 * four < tiles; four += warps) {
    const std::int64_t pair = 2 * four + upper;
    const std::int64_t pair_first = a.begin + kSampleTile * pair;
    std::uint32_t word[16];
    if (is_poisson)
      random_block<ScalarLanes>(a.stream, static_cast<std::uint32_t>(pair_first / 32 + lane), word);
    for (int part = 0; part < 2; ++part) {
      const std::int64_t tile = 2 * pair + part;
      const std::int64_t first = pair_first + std::int64_t{256} * part + lane;
      unsigned column = 0;  // bit r: example first + 16 r is drawn
      if (is_poisson) {
        column =
            drawn_of_column(a, first, [&](int row) { return word[row] >> 16 * part & 0xffff; });
      } else {
        random_block<ScalarLanes>(a.stream, static_cast<std::uint32_t>(first / 16 + lane), word);
        CUDP_UNROLL for (int row = 0; row < 16; ++row) {
          const std::int64_t example = first + std::int64_t{16} * row;
          if (example >= a.end) continue;
          const std::uint32_t index = index_of<kNumbered>(a, example);
          if (kNumbered && index == kHeldOut) continue;
          if (word[row] < candidate_threshold(a.rule, a.norms[index])) column |= 1u << row;
        }
      }
      unsigned row_flags = 0;  // flags of row `lane`
      CUDP_UNROLL for (int row = 0; row < 16; ++row) {
        bool drawn = first + std::int64_t{16} * row < a.end && (column >> row & 1) != 0;
        if constexpr (kNumbered)
          drawn = drawn && index_of<true>(a, first + std::int64_t{16} * row) != kHeldOut;
        const unsigned flags = __ballot_sync(kFullWarp, drawn) >> 16 * upper & 0xffffu;
        if (row == lane) row_flags = flags;
      }
      int count = __popc(row_flags);
      for (int offset = 8; offset > 0; offset /= 2)
        count += __shfl_xor_sync(kFullWarp, count, offset);
      if (tile < tiles) {
        space.flags[16 * tile + lane] = static_cast<std::uint16_t>(row_flags);
        if (lane == 0) space.counts[tile] = static_cast<std::uint32_t>(count);
      }
    }
  }
}

// Writes which examples Poisson or importance sampling draws, and how many per tile. grid.x: any;
// grid.y: steps. block: any whole warps. Half a warp processes two tiles, so 8 threads per tile are
// enough.
__global__ inline void sample_flags_kernel(SampleArgs a, SampleSpace space) {
  write_flags<false>(a, space);
}

// As the kernel above, with held-out rows.
__global__ inline void numbered_flags_kernel(SampleArgs a, SampleSpace space) {
  write_flags<true>(a, space);
}

/// Steps of four consecutive examples. A thread loads all of them at once.
struct alignas(16) FourSteps {
  std::uint32_t step[4];
};

// First kernel of random allocation: writes flags and counts from the stored steps of the examples.
// grid: any, y steps. block: any whole warps; a thread takes 16 consecutive examples.
__global__ inline void allocated_flags_kernel(SampleArgs a, SampleSpace space) {
  choose_step(a, space);
  if (space.cursor != nullptr) {
    if (halts(*space.cursor)) return;
    a.stream.step = space.cursor->first + space.cursor->index;
  }
  const std::uint64_t epoch = a.stream.step / a.epoch_steps;
  const auto step = static_cast<std::uint32_t>(a.stream.step - epoch * a.epoch_steps);
  const std::int64_t rows = 16 * sample_tiles(a);
  const auto at = static_cast<std::int64_t>(epoch % a.allocated.epochs) * 16 * rows;
  const auto* const steps = reinterpret_cast<const FourSteps*>(a.allocated.step + at);
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  // Whole warps iterate together, for the shuffles: the tile of the second half may not exist.
  for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       row / kWarp * kWarp < rows; row += threads) {
    unsigned flags = 0;
    if (row < rows) {
      FourSteps of[4];
      CUDP_UNROLL for (int part = 0; part < 4; ++part) { of[part] = steps[4 * row + part]; }
      CUDP_UNROLL for (int i = 0; i < 16; ++i) {
        flags |= of[i / 4].step[i % 4] == step ? 1u << i : 0u;
      }
    }
    int count = __popc(flags);
    for (int offset = 8; offset > 0; offset /= 2)
      count += __shfl_xor_sync(kFullWarp, count, offset);
    if (row >= rows) continue;
    space.flags[row] = static_cast<std::uint16_t>(flags);
    if (row % 16 == 0) space.counts[row / 16] = static_cast<std::uint32_t>(count);
  }
}

// Replaces the number of drawn examples of each tile by the number drawn before the tile. grid.x:
// 1; grid.y: steps. block: whole warps. dynamic smem: block / 32 words.
__global__ inline void sample_scan_kernel(SampleArgs a, SampleSpace space) {
  CUDP_DYNAMIC_SMEM(std::uint32_t, warp_totals);
  choose_step(a, space);
  if (space.cursor != nullptr && halts(*space.cursor)) return;  // the counts are offsets already
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const std::int64_t tiles = sample_tiles(a);
  std::uint32_t before = 0;  // drawn in earlier rounds
  for (std::int64_t round = 0; round < tiles; round += blockDim.x) {
    const std::int64_t tile = round + threadIdx.x;
    const std::uint32_t count = tile < tiles ? space.counts[tile] : 0;
    std::uint32_t sum = count;  // sum over this warp's tiles up to and including this one
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const std::uint32_t below = __shfl_up_sync(kFullWarp, sum, offset);
      if (lane >= offset) sum += below;
    }
    if (lane == kWarp - 1) warp_totals[warp] = sum;
    __syncthreads();
    std::uint32_t start = before;
    for (int w = 0; w < static_cast<int>(blockDim.x / kWarp); ++w) {
      if (w < warp) start += warp_totals[w];
      before += warp_totals[w];
    }
    if (tile < tiles) space.counts[tile] = start + sum - count;
    __syncthreads();  // the next round overwrites warp_totals
  }
  if (threadIdx.x == 0) space.counts[tiles] = before;
}

/// Returns the number of examples drawn in tiles first .. end - 1 (a tile is 256 examples). Every
/// thread of the block must call it, and every thread gets the result. partial: shared memory, one
/// word per warp. space: scratch memory, with the counts of all tiles.
__device__ __forceinline__ std::uint32_t drawn_in(const SampleSpace& space, std::int64_t first,
                                                  std::int64_t end, std::uint32_t* partial) {
  std::uint32_t sum = 0;
  for (std::int64_t t = first + threadIdx.x; t < end; t += blockDim.x) sum += space.counts[t];
  return next_block_sum(sum, partial);
}

/// Starts the next step of a run, whose batch has `drawn` examples, by advancing the cursor (the
/// run's progress in device memory). Called by one thread of one block. Returns the number of
/// examples that the step sums: `drawn`, or 0 if the step must not run. space: scratch memory and
/// result of sampling, with the cursor.
__device__ __forceinline__ std::uint32_t begin_step(const SampleSpace& space, std::uint32_t drawn) {
  StepCursor& c = *space.cursor;
  c.active = 0;
  c.may_update = 0;
  if (halts(c)) return 0;
  if (drawn > space.capacity) c.failed = kBatchFailed;
  if (c.awaits_update != 0) c.failed = kUpdateMissing;
  if (c.failed != 0) return 0;
  if (drawn > space.launch_capacity) {
    c.oversized_batch = drawn;
    return 0;
  }
  c.active = 1;
  c.awaits_update = space.has_separate_update ? 1 : 0;
  c.step = c.first + c.index;
  ListedStep& now = space.list[c.index];
  if (c.adapts_clip_norm != 0) {
    // The previous step is complete; otherwise this step would not have been started.
    if (c.index > 0) {
      const ListedStep& before = space.list[c.index - 1];
      const float clip = next_clip(c.clip, before.scalars.clip_norm, before.noisy_count);
      now.scalars = scalars_at(c.clip, clip, now.scalars);
      now.scale = scale_at(clip);
    }
    c.halves = halves_of(*space.counted);
  }
  c.scalars = now.scalars;
  c.scale = now.scale;
  ++c.index;
  return drawn;
}

/// Returns whether the batches of steps first to end - 1 can be drawn: with random allocation, the
/// epochs of these steps must be in memory.
__device__ __forceinline__ bool can_draw(const SampleArgs& a, StepRange steps) {
  return a.epoch_steps == 0 ||
         (a.allocated.range->has(steps.first) && a.allocated.range->has(steps.end - 1));
}

// Second kernel of sampling: writes a.drawn and *space.count, and advances the cursor. grid: any, y
// steps. block: whole warps up to 1024 threads. static smem: one word per warp.
__global__ inline void sample_place_kernel(SampleArgs a, SampleSpace space) {
  CUDP_SHARED(std::uint32_t, partial, [1024 / kWarp]);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    StepRange steps{a.stream.step, a.stream.step + gridDim.y};
    if (space.cursor != nullptr) {
      steps.first = space.cursor->first + space.cursor->index;
      steps.end = steps.first + 1;
    }
    const bool is_there = can_draw(a, steps);
    if (space.range != nullptr) *space.range = is_there ? steps : StepRange{};
    if (space.cursor != nullptr && !is_there && !halts(*space.cursor))
      space.cursor->failed = kNotDrawn;
  }
  choose_step(a, space);
  const std::int64_t tiles = sample_tiles(a);
  if (blockIdx.x == 0) {
    const std::uint32_t all =
        space.scanned ? space.counts[tiles] : drawn_in(space, 0, tiles, &partial[0]);
    if (threadIdx.x == 0) *space.count = space.cursor != nullptr ? begin_step(space, all) : all;
  }
  // While the last started step waits for the host, its list of drawn examples must not change. If
  // the run has stopped for another reason, the flags are still those of the last started step, and
  // its list is written once more, unchanged.
  if (space.cursor != nullptr && space.cursor->pending != 0) return;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 16);
  const std::int64_t block_tiles = blockDim.x / 16;
  std::uint32_t before = 0;  // drawn in the first `added` tiles
  std::int64_t added = 0;
  // All threads of the block iterate together, because of the sums and shuffles.
  for (std::int64_t first = blockIdx.x * block_tiles; first < tiles;
       first += gridDim.x * block_tiles) {
    if (!space.scanned) {
      before += drawn_in(space, added, first, &partial[0]);
      added = first;
    }
    const std::int64_t tile = first + threadIdx.x / 16;
    unsigned flags = tile < tiles ? space.flags[16 * tile + lane] : 0;
    int sum = __popc(flags);  // sum over the tile's rows up to and including this one
    for (int offset = 1; offset < 16; offset *= 2) {
      const int below = __shfl_up_sync(kFullWarp, sum, offset, 16);
      if (lane >= offset) sum += below;
    }
    std::uint32_t start = before;
    if (!space.scanned) {  // add the block's own tiles before this one
      std::uint32_t own = 0;
      for (std::int64_t t = first + lane; t < tile && t < tiles; t += 16) own += space.counts[t];
      for (int offset = 8; offset > 0; offset /= 2)
        own += __shfl_xor_sync(kFullWarp, own, offset, 16);
      start += own;
    } else if (tile < tiles) {
      start = space.counts[tile];
    }
    if (tile >= tiles) continue;
    std::uint32_t to = start + static_cast<std::uint32_t>(sum - __popc(flags));
    const auto at = static_cast<std::uint32_t>(a.begin - a.first + 256 * tile + 16 * lane);
    for (; flags != 0 && to < space.list_size; flags &= flags - 1, ++to) {
      const std::uint32_t i = at + static_cast<std::uint32_t>(__ffs(static_cast<int>(flags))) - 1;
      a.drawn[to] = a.index != nullptr ? a.index[i] : i;
    }
  }
}

/// Copies the first n indices of a batch from a list to another one. Called by `threads` threads
/// with the numbers 0, 1, ...; a thread loads 8 indices at a time.
__device__ __forceinline__ void copy_batch(const std::uint32_t* from, std::uint32_t* to,
                                           std::uint32_t n, std::uint32_t thread,
                                           std::uint32_t threads) {
  constexpr int kAtOnce = 8;
  for (std::uint32_t first = thread; first < n; first += kAtOnce * threads) {
    std::uint32_t index[kAtOnce];
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = first + static_cast<std::uint32_t>(k) * threads;
      index[k] = i < n ? from[i] : 0;
    }
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = first + static_cast<std::uint32_t>(k) * threads;
      if (i < n) to[i] = index[k];
    }
  }
}

// Starts the next step with its batch, which was drawn ahead: copies it to `drawn`, and its size to
// *space.count, and advances the cursor. For steps that the step before has not started: the first
// of a run or of the batches drawn ahead, and the one after a step that waited for the host. grid:
// 1. block: any. static smem: two words.
__global__ inline void begin_step_kernel(BatchesAhead ahead, SampleSpace space,
                                         std::uint32_t* drawn) {
  CUDP_SHARED(std::uint32_t, batch, [2]);
  if (threadIdx.x == 0) {
    StepCursor& c = *space.cursor;
    const std::uint64_t step = c.first + c.index;
    const bool is_there = ahead.range->has(step);
    if (!is_there && !halts(c)) c.failed = kNotDrawn;
    batch[0] = is_there ? static_cast<std::uint32_t>(step - ahead.range->first) : 0;
    batch[1] = begin_step(space, is_there ? ahead.counts[batch[0]] : 0);
    *space.count = batch[1];
  }
  __syncthreads();
  copy_batch(ahead.examples + std::int64_t{batch[0]} * ahead.list_size, drawn, batch[1],
             threadIdx.x, blockDim.x);
}

/// Copies the batch of the step after the current one, if it was drawn ahead. Threads with the
/// numbers 0, 1, ... share the work. Requires that no thread still needs the current step's batch.
/// If the next step is not started after the current one, the copy is not used: begin_step_kernel
/// makes it again.
__device__ __forceinline__ void copy_next_batch(const NextStep& next, std::uint32_t thread,
                                                std::uint32_t threads) {
  if (next.drawn == nullptr) return;
  const StepCursor& c = *next.space.cursor;
  const std::uint64_t step = c.first + c.index;
  const StepRange range = *next.batches.range;
  if (!range.has(step)) return;
  const auto row = static_cast<std::int64_t>(step - range.first);
  const std::uint32_t count = next.batches.counts[row];
  copy_batch(next.batches.examples + row * next.batches.list_size, next.drawn,
             count < next.batches.list_size ? count : next.batches.list_size, thread, threads);
}

/// Starts the step after the current one, if its batch was drawn ahead. Called by all threads of
/// all blocks of the current step's last launch, as their last action. Requires that
/// copy_next_batch() has been called. The last block that calls it advances the cursor: all other
/// blocks have then read the members of the cursor that they need, and have counted their undecided
/// pairs of noise numbers.
///
/// A block's work is ordered before the start of the step by a barrier of the block, a fence and
/// the counter of blocks, which the last block reads before its own fence.
__device__ __forceinline__ void start_next_step(const NextStep& next) {
  if (next.drawn == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  StepCursor& c = *next.space.cursor;
  __threadfence();
  if (atomicAdd(&c.blocks_done, 1u) + 1 != gridDim.x) return;
  __threadfence();
  const std::uint64_t step = c.first + c.index;
  const StepRange range = *next.batches.range;
  c.blocks_done = 0;
  c.active = 0;
  *next.space.count =
      range.has(step) ? begin_step(next.space, next.batches.counts[step - range.first]) : 0;
}

}  // namespace cudp::inline CUDP_SIMT
