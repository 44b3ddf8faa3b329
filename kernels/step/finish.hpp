#pragma once
// End of a step on a device, in one pass over the parameters: completes the sum of the batch, adds
// noise, which makes it public, and takes the optimizer's step.
//
// Noise is computed in pairs of rounded normals. For a few pairs, double precision cannot decide
// what an exact value rounds to (random/rounded_normal_math.hpp). The numbers of an undecided pair
// are left unchanged: nothing of them is released. The pair's bit is set and the `pending` counter
// of StepCursor counts it. The run then pauses until the host has computed the pair with
// exact_rounded_pair, and finish_pairs_kernel has completed its numbers. There is one bit for every
// pair, so no list can overflow. A pair is completed only if its bit is set, which clears the bit:
// no number is updated twice.
#include <cstdint>
#include <vector>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/step/block_sums.hpp"
#include "kernels/step/step_cursor.hpp"
#include "kernels/step/tally.hpp"
#include "kernels/step/update.hpp"

namespace cudp {

/// Partial results of a batch that finish_kernel has yet to add: partial sums of gradients, and the
/// loss, norm and counts of examples.
struct Unfinished {
  BlockSums sums{};
  TallyBatch tally{};  ///< losses and counts to add; total is null if nothing is counted
};

/// Finishes a step with n parameters. Computes the noisy sum r_j = grid (S_j + K_j) for each
/// parameter j, writes it to `released` or updates parameter j with it, and sets sum[j] = 0. S_j
/// and K_j are integers, and grid is StepCursor::scale.grid. S_j is sum[j] plus the partial sums
/// that are still to be added. K_j is the noise, a normal random number that is rounded to an
/// integer. If double precision is too coarse to decide the rounding, only sum[j] = S_j is written,
/// and the host decides later (see the head of this file).
struct FinishStep {
  StepCursor* cursor;
  FixedPoint* sum;        ///< [n], sum of the batch's contributions, as multiples of the grid
  Unfinished unfinished;  ///< partial results to add; one more block adds up its losses and counts
  RandomStream noise;
  std::int64_t n;
  std::uint32_t* undecided;  ///< [words_of_pairs(n)], one bit per pair of numbers, 0 before
  float* released;           ///< [n], written; null: released values are used by `update` only
  UpdateArgs update;  ///< update of the numbers if released is null; its own `released` is unused
  bool by_pairs;      ///< one pair per thread; otherwise one generator block per thread
  ListedStep* list = nullptr;  ///< [steps of the run]; null if the clipping norm is fixed
};

/// Pair of rounded normals that a device could not decide and the host has computed: pair number
/// `pair` of step number `step`.
struct DecidedPair {
  std::uint64_t step;
  std::uint32_t pair;
  RoundedPair k;
};
/// Completes the numbers of a step whose noise the host has computed.
struct FinishPairs {
  FinishStep step;           ///< arguments that the step was launched with
  const DecidedPair* pairs;  ///< [count], no pair twice
  std::uint32_t count;
};

/// Returns the number of pairs of rounded normals for n numbers: 64 for each 128 numbers, so some
/// pairs at the end may be unused.
inline std::int64_t rounded_pairs(std::int64_t n) { return (n + 127) / 128 * 64; }
/// Returns the number of 32-bit words for one bit per pair.
inline std::int64_t words_of_pairs(std::int64_t n) { return rounded_pairs(n) / 32; }

/// Returns the pairs whose bit in `undecided` is set, computed on the host in multiple precision:
/// 20 us each. undecided: FinishStep::undecided, [words_of_pairs(n)]; at: StepCursor after the
/// step; noise: FinishStep::noise. Throws std::runtime_error if the random generator is broken.
std::vector<DecidedPair> decided_pairs(const std::vector<std::uint32_t>& undecided,
                                       const StepCursor& at, RandomStream noise);

/// Largest number of parameters for which a thread computes one pair of rounded normals, and not
/// all four of a generator block. Each generator block is then computed four times, but a small
/// model keeps the whole device busy.
inline constexpr std::int64_t kPairwise = std::int64_t{1} << 17;

inline void validate(const FinishStep& a) {
  expect(a.cursor && a.sum && a.undecided && a.n > 0, "finish: expected pointers and n > 0");
  expect(a.released != nullptr || (a.update.parameters && a.update.end == a.n),
         "finish: expected `released`, or parameters to update");
  validate(a.unfinished.sums);
  expect(a.unfinished.sums.slabs == nullptr || a.by_pairs, "finish: slabs are finished by pairs");
  if (a.unfinished.tally.total != nullptr) validate(a.unfinished.tally);
}
inline void validate(const FinishPairs& a) {
  validate(a.step);
  expect(a.pairs && a.count > 0, "finish pairs: expected pairs");
}
/// Threads of a block of finish_slabs_kernel: one warp makes noise and releases 32 pairs of
/// numbers, three warps add up partial sums.
inline constexpr unsigned kSlabThreads = 128;

/// Launch shape with small blocks, so that small models use the whole device.
inline LaunchShape launch_shape(const FinishStep& a) {
  const bool has_slabs = a.unfinished.sums.slabs != nullptr;
  LaunchShape shape = strided_shape(rounded_pairs(a.n) / (a.by_pairs ? 1 : 4), has_slabs ? 32 : 64);
  if (has_slabs) shape.block.x = kSlabThreads;
  if (a.unfinished.tally.total != nullptr) ++shape.grid.x;
  return shape;
}
inline LaunchShape launch_shape(const FinishPairs& a) { return strided_shape(a.count, 64); }

}  // namespace cudp
