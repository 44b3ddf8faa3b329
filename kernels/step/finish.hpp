#pragma once
// End of a step on a device, in one pass over the parameters: completes the sum of the batch, adds
// noise, which makes it public, and takes the optimizer's step.
//
// Double cannot decide every pair of rounded normals (random/rounded_normal_math.hpp). The numbers
// of an undecided pair are left unchanged: nothing of them is released. The pair's bit is set and
// the cursor's `pending` counts it. The run then pauses (step_cursor.hpp) until the host has
// computed the pair with exact_rounded_pair, and finish_pairs_kernel has completed its numbers.
// There is one bit for every pair, so no list can overflow. A pair is completed only if its bit is
// set, which clears the bit: no number is updated twice.
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

/// Data still to be added to the sum of a batch, and to its tally.
struct Unfinished {
  BlockSums sums{};
  TallyBatch tally{};  ///< total is null if nothing is counted
};

/// Finishes a step: r_j = grid (S_j + K_j), which is released or used for an update; sum[j] = 0.
/// S_j = sum[j] + the slabs' numbers j. K_j is the rounded normal number j of the cursor's step,
/// with the cursor's noise_std and grid. For numbers of undecided pairs only sum[j] = S_j is
/// written.
struct FinishStep {
  StepCursor* cursor;
  FixedPoint* sum;  ///< [n]
  Unfinished left;  ///< a block of its own computes the tally
  RandomStream noise;
  std::int64_t n;
  std::uint32_t* undecided;  ///< [words_of_pairs(n)], one bit per pair, 0 before
  float* released;           ///< [n], written; null: released values are used by `update` only
  UpdateArgs update;  ///< update of the numbers if released is null; its own `released` is unused
  bool by_pairs;      ///< one pair per thread; otherwise one generator block per thread
  ListedStep* list = nullptr;  ///< [steps of the run], if the clipping norm is adaptive
};

/// Pair that the host has computed.
struct DecidedPair {
  std::uint64_t step;
  std::uint32_t pair;
  RoundedPair k;
};
struct FinishPairs {
  FinishStep step;           ///< step as it was launched
  const DecidedPair* pairs;  ///< [count], each once
  std::uint32_t count;
};

/// Number of pairs of n numbers; pairs of the last tile may have no number.
inline std::int64_t rounded_pairs(std::int64_t n) { return (n + 127) / 128 * 64; }
inline std::int64_t words_of_pairs(std::int64_t n) { return rounded_pairs(n) / 32; }

/// Returns the pairs whose bit is set, computed on the host in multiple precision: 20 us each.
/// undecided: FinishStep::undecided, [words_of_pairs(n)]; at: the cursor after the step; noise:
/// FinishStep::noise. Throws like exact_rounded_pair.
std::vector<DecidedPair> decided_pairs(const std::vector<std::uint32_t>& undecided,
                                       const StepCursor& at, RandomStream noise);

/// Largest number of parameters for which a thread computes one pair and not a whole generator
/// block. Each block is then computed four times, but small models fill the device.
inline constexpr std::int64_t kPairwise = std::int64_t{1} << 17;

inline void validate(const FinishStep& a) {
  expect(a.cursor && a.sum && a.undecided && a.n > 0, "finish: expected pointers and n > 0");
  expect(a.released != nullptr || (a.update.parameters && a.update.end == a.n),
         "finish: expected `released`, or parameters to update");
  validate(a.left.sums);
  expect(a.left.sums.slabs == nullptr || a.by_pairs, "finish: slabs are finished by pairs");
  if (a.left.tally.total != nullptr) validate(a.left.tally);
}
inline void validate(const FinishPairs& a) {
  validate(a.step);
  expect(a.pairs && a.count > 0, "finish pairs: expected pairs");
}
/// Threads of a block if there are slabs: one warp releases 32 pairs, three add up their slabs.
inline constexpr unsigned kSlabThreads = 128;

/// Launch shape with small blocks, so that small models fill the device.
inline LaunchShape launch_shape(const FinishStep& a) {
  const bool has_slabs = a.left.sums.slabs != nullptr;
  LaunchShape shape = strided_shape(rounded_pairs(a.n) / (a.by_pairs ? 1 : 4), has_slabs ? 32 : 64);
  if (has_slabs) shape.block.x = kSlabThreads;
  if (a.left.tally.total != nullptr) ++shape.grid.x;
  return shape;
}
inline LaunchShape launch_shape(const FinishPairs& a) { return strided_shape(a.count, 64); }

}  // namespace cudp
