#pragma once
// End of a step on a device, in one pass over the parameters: completes the sum of the batch, adds
// noise, which makes the sum public, and takes the optimizer's step. It also starts the next step,
// if that step's batch was drawn ahead.
//
// Noise is computed in pairs of rounded normals. For a few pairs, double precision cannot decide
// what an exact value rounds to (random/rounded_normal_math.hpp). For such an undecided pair, no
// noise is added and nothing is released. The pair's bit in FinishStep::undecided is set, and the
// pair is counted in StepCursor::pending. The run then pauses until the host has computed the pair
// with exact_rounded_pair, and finish_pairs_kernel has completed its numbers. There is one bit for
// every pair, so no list can overflow. Completing a pair requires that its bit is set, and clears
// it, so no number is updated twice.
#include <cstdint>
#include <vector>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/step/block_sums.hpp"
#include "kernels/step/sample.hpp"
#include "kernels/step/step_cursor.hpp"
#include "kernels/step/tally.hpp"
#include "kernels/step/update.hpp"

namespace cudp {

/// Partial results of a batch that the last kernel of a step adds up: a fused kernel's partial sums
/// of gradients, and the losses, gradient norms and counts of the batch's examples.
struct Unfinished {
  BlockSums sums{};
  TallyBatch tally{};  ///< losses and counts to add; total is null if nothing is counted
};

/// Finishes a step with n parameters. For each parameter j, computes the noisy sum r_j = grid (S_j
/// + K_j), writes it to `released` or updates parameter j with it, and sets sum[j] = 0. S_j and K_j
/// are integers, and grid is the power of two to whose multiples gradients are rounded
/// (StepCursor::scale.grid). S_j is sum[j] plus the partial sums in `unfinished`. K_j is the noise,
/// a normal random number rounded to an integer. If double precision is too coarse to decide that
/// rounding, only S_j is written, to sum[j], and the host computes K_j later.
struct FinishStep {
  StepCursor* cursor;
  FixedPoint* sum;        ///< [n], sum of the batch's contributions, as multiples of the grid
  Unfinished unfinished;  ///< partial results to add; one more block adds up its losses and counts
  RandomStream noise;
  std::int64_t n;
  /// Written, [words_of_pairs(n)]: bit p is 1 if double precision could not decide the rounding of
  /// noise pair p, so that the host must compute it. All bits must be 0 before the launch.
  std::uint32_t* undecided;
  float* released;    ///< [n], written; null: released values are used by `update` only
  UpdateArgs update;  ///< update of the numbers if released is null; its own `released` is unused
  bool by_pairs;      ///< one pair per thread; otherwise one generator block per thread
  ListedStep* list = nullptr;  ///< [steps of the run]; null if the clipping norm is fixed
  NextStep next{};             ///< the step to start; not with `released`
};

/// Pair of noise numbers (rounded normals) whose rounding a device could not decide, as computed by
/// the host. It is pair number `pair` of step number `step`.
struct DecidedPair {
  std::uint64_t step;
  std::uint32_t pair;
  RoundedPair k;
};
/// Finishes those numbers of a step's sum that a device left unfinished, with noise that the host
/// has computed.
struct FinishPairs {
  FinishStep step;           ///< arguments that the step was launched with
  const DecidedPair* pairs;  ///< [count], no pair twice
  std::uint32_t count;
};

/// Returns the number of pairs of rounded normals (the noise) that are generated for a gradient
/// with n numbers: 64 for every 128 numbers, rounded up. Some pairs at the end may be unused.
inline std::int64_t rounded_pairs(std::int64_t n) { return (n + 127) / 128 * 64; }
/// Returns the number of 32-bit words of an array with one bit for each pair of noise numbers, for
/// n numbers.
inline std::int64_t words_of_pairs(std::int64_t n) { return rounded_pairs(n) / 32; }

/// Computes on the host, in multiple precision (20 us each), the pairs of noise numbers whose bit
/// in `undecided` is set. undecided: the array FinishStep::undecided, [words_of_pairs(n)]. at: the
/// progress of the run after the step. noise: the random stream FinishStep::noise. Throws
/// std::runtime_error if the random generator does not work.
std::vector<DecidedPair> decided_pairs(const std::vector<std::uint32_t>& undecided,
                                       const StepCursor& at, RandomStream noise);

/// Largest number of parameters for which each thread computes one pair of noise numbers. A block
/// of the random generator gives four pairs, so each block is then generated four times, but even a
/// small model keeps the whole device busy. With more parameters a thread computes all four.
inline constexpr std::int64_t kPairwise = std::int64_t{1} << 17;

inline void validate(const FinishStep& a) {
  expect(a.cursor && a.sum && a.undecided && a.n > 0, "finish: expected pointers and n > 0");
  expect(a.released != nullptr || (a.update.parameters && a.update.end == a.n),
         "finish: expected `released`, or parameters to update");
  expect(
      a.next.drawn == nullptr || (a.released == nullptr && a.next.space.cursor == a.cursor &&
                                  a.next.space.list && a.next.space.count && a.next.batches.range &&
                                  a.next.batches.counts && a.next.batches.examples),
      "finish: expected a next step only after an update, with pointers");
  validate(a.unfinished.sums);
  expect(a.unfinished.sums.slabs == nullptr || a.by_pairs, "finish: slabs are finished by pairs");
  if (a.unfinished.tally.total != nullptr) validate(a.unfinished.tally);
}
inline void validate(const FinishPairs& a) {
  validate(a.step);
  expect(a.pairs && a.count > 0, "finish pairs: expected pairs");
}
/// Number of threads per block of finish_slabs_kernel: one warp makes the noise and releases 32
/// pairs of numbers, and three warps add up partial sums of gradients.
inline constexpr unsigned kSlabThreads = 128;

/// Returns a launch shape with small blocks, so that small models also use the whole device.
inline LaunchShape launch_shape(const FinishStep& a) {
  const bool has_slabs = a.unfinished.sums.slabs != nullptr;
  LaunchShape shape = strided_shape(rounded_pairs(a.n) / (a.by_pairs ? 1 : 4), has_slabs ? 32 : 64);
  if (has_slabs) shape.block.x = kSlabThreads;
  if (a.unfinished.tally.total != nullptr) ++shape.grid.x;
  return shape;
}
inline LaunchShape launch_shape(const FinishPairs& a) { return strided_shape(a.count, 64); }

}  // namespace cudp
