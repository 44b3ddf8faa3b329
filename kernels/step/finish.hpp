#pragma once
// The end of a step on a device: the sum of the batch is completed, noise is added, which makes it
// public, and the optimizer takes its step; in one pass over the parameters.
//
// Double cannot decide every pair of rounded normals (random/rounded_normal_math.hpp). The numbers
// of one that it cannot are left as they are: nothing of them is released. The pair's bit is set,
// the cursor's `pending` counts it, and with that the run stands still (step_cursor.hpp) until the
// host has made the pair by exact_rounded_pair and finish_pairs_kernel has completed its numbers.
// The bits hold every pair that there is, so there is no list that could be too short. A pair is
// completed only where its bit is set, and that clears it: no number is updated twice.
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

/// What is left to add to the sum of a batch, and to its tally.
struct Unfinished {
  BlockSums sums{};
  TallyBatch tally{};  ///< its total is null where nothing is counted
};

/// With S_j = sum[j] + the slabs' numbers j and K_j the rounded normal number j of the cursor's
/// step, noise_std and grid the cursor's: r_j = grid (S_j + K_j), released or used for an update;
/// sum[j] = 0. For numbers of undecided pairs sum[j] = S_j, and nothing else.
struct FinishStep {
  StepCursor* cursor;
  FixedPoint* sum;  ///< [n]
  Unfinished left;  ///< the tally is made by a block of its own
  RandomStream noise;
  std::int64_t n;
  std::uint32_t* undecided;    ///< [words_of_pairs(n)], a bit a pair, 0 before
  float* released;             ///< [n], written; null: what is released goes into `update` alone
  UpdateArgs update;           ///< of the numbers, without `released`, where that is null
  bool by_pairs;               ///< a thread a pair, and not a generator block
  ListedStep* list = nullptr;  ///< [steps of the run], where the clipping norm moves
};

/// A pair that the host has made.
struct DecidedPair {
  std::uint64_t step;
  std::uint32_t pair;
  RoundedPair k;
};
struct FinishPairs {
  FinishStep step;           ///< as it was launched
  const DecidedPair* pairs;  ///< [count], each once
  std::uint32_t count;
};

/// Pairs of n numbers; those of the last tile may have no number.
inline std::int64_t rounded_pairs(std::int64_t n) { return (n + 127) / 128 * 64; }
inline std::int64_t words_of_pairs(std::int64_t n) { return rounded_pairs(n) / 32; }

/// The pairs whose bit is set, as the host makes them, in multiple precision: 20 us each.
/// undecided: FinishStep::undecided, [words_of_pairs(n)]; at: the cursor, as the step has left it;
/// noise: FinishStep::noise. Throws as exact_rounded_pair.
std::vector<DecidedPair> decided_pairs(const std::vector<std::uint32_t>& undecided,
                                       const StepCursor& at, RandomStream noise);

/// Up to so many numbers a thread makes one pair, and a generator block is made four times: a
/// device is not filled otherwise, and waits.
inline constexpr std::int64_t kPairwise = std::int64_t{1} << 17;

inline void validate(const FinishStep& a) {
  expect(a.cursor && a.sum && a.undecided && a.n > 0, "finish: expected pointers and n > 0");
  expect(a.released != nullptr || (a.update.parameters && a.update.end == a.n),
         "finish: expected where to release to, or what to update");
  validate(a.left.sums);
  if (a.left.tally.total != nullptr) validate(a.left.tally);
}
inline void validate(const FinishPairs& a) {
  validate(a.step);
  expect(a.pairs && a.count > 0, "finish pairs: expected pairs");
}
/// Small blocks, so that small models fill the device.
inline LaunchShape launch_shape(const FinishStep& a) {
  LaunchShape shape = strided_shape(rounded_pairs(a.n) / (a.by_pairs ? 1 : 4), 64);
  if (a.left.tally.total != nullptr) ++shape.grid.x;
  return shape;
}
inline LaunchShape launch_shape(const FinishPairs& a) { return strided_shape(a.count, 64); }

}  // namespace cudp
