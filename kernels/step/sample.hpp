#pragma once
#include <cstdint>

#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/step_cursor.hpp"
#include "kernels/step/tally.hpp"

namespace cudp {

/// Number of examples whose upper 16 random bits come from the same tile of 256 words.
inline constexpr std::int64_t kSampleTile = 512;
/// Index of the first word of the stream that is used for lower 16 random bits.
inline constexpr std::int64_t kLowerBits = std::int64_t{1} << 31;

/// Value in SampleArgs::index for an example that is held out, so never drawn.
inline constexpr std::uint32_t kHeldOut = 0xffffffffu;

/// Poisson sampling: every example is drawn independently with probability threshold / 2^32
/// exactly: if a number of 32 random bits is below `threshold`. The number's upper 16 bits are one
/// half of word 256 (i / 512) + i % 256 of the stream: the low half if i % 512 < 256, otherwise the
/// high half. Its lower 16 bits are the same half of the word 2^31 further. They are generated only
/// for the one example in 65,536 whose upper bits equal the threshold's. No two examples share a
/// bit: i is below 2^32, so upper bits are in words below 2^31.
///
/// Importance sampling (norms is not null; importance.hpp): example i is drawn if word i of the
/// stream is below candidate_threshold(rule, norms[i]).
struct SampleArgs {
  RandomStream stream;      ///< Stream::sampling at this step
  std::uint64_t threshold;  ///< 0..2^32; the sampling rate is threshold / 2^32
  std::int64_t begin;       ///< first example, a multiple of 512
  std::int64_t end;         ///< one past the last example
  std::uint32_t* drawn;     ///< written: indices minus `first`, ascending; capacity end - begin
  const float* norms = nullptr;  ///< norms of examples first to end - 1, or null
  ImportanceRule rule = {};      ///< used with norms only
  std::int64_t first = 0;        ///< example with index 0 in drawn and norms, at most begin
  /// Random allocation (allocation.hpp), on a device: number of steps of an epoch; 0 for the other
  /// draws. The stream is then Stream::allocation, and its step is the step that is drawn.
  std::uint32_t epoch_steps = 0;
  /// Each example's step of the epoch, from `first` on, written by Allocate; null: computed.
  const std::uint32_t* allocated = nullptr;
  /// Index in drawn and norms of each example first, first + 1, ..., end - 1, ascending; kHeldOut:
  /// the example is never drawn. Null: they are consecutive. CUDA only.
  const std::uint32_t* index = nullptr;
};

/// Scratch memory and result of sampling on a device. A tile is 256 examples: tiles = ceil((end -
/// begin) / 256).
///
/// A launch without a cursor draws the batches of gridDim.y consecutive steps, from the step of
/// SampleArgs::stream on. Then every array has a part for each step: flags [steps, tiles, 16],
/// counts [steps, tiles + 1], count [steps], drawn [steps, list_size].
struct SampleSpace {
  std::uint16_t* flags;   ///< [tiles, 16], bit l of row r: example 16 r + l of the tile is drawn
  std::uint32_t* counts;  ///< [tiles + 1], number drawn in each tile; if scanned: number drawn
                          ///< before each tile, and in the last entry the total
  std::uint32_t* count;   ///< number of examples drawn; 0 if the step may not run
  bool scanned = false;   ///< sample_scan_kernel runs between the two kernels
  std::uint32_t list_size = 0xffffffffu;  ///< capacity of a step's list; the rest is only counted
  std::uint64_t* first = nullptr;         ///< written: number of the first step; or null
  /// Progress of the run whose next step is drawn and started. Null: draws the step of
  /// SampleArgs::stream and starts none; the members below are not used.
  StepCursor* cursor = nullptr;
  ListedStep* list = nullptr;  ///< [steps of the run]
  std::uint32_t capacity = 0;  ///< a larger batch makes the run fail
  std::uint32_t launch_capacity =
      0xffffffffu;                   ///< a larger batch is not started: launches would truncate it
  bool has_separate_update = false;  ///< the step's update is a separate launch
  const Tally* counted = nullptr;    ///< totals so far; used if the clipping norm is adaptive
};

/// Batches of consecutive steps, drawn ahead.
struct BatchesAhead {
  const std::uint64_t* first;     ///< number of the first of the steps
  const std::uint32_t* counts;    ///< [steps], number of examples drawn in each
  const std::uint32_t* examples;  ///< [steps, list_size], SampleArgs::drawn of each step
  std::uint32_t list_size;
  std::uint32_t steps;
};

/// Number of tiles (4 M examples) above which sample_scan_kernel computes each tile's offset in the
/// list; below, each block of the second kernel computes its own.
inline constexpr std::int64_t kScannedTiles = std::int64_t{1} << 14;

/// Throws std::invalid_argument naming the member that is out of range. Requires end <= 2^32.
void validate(const SampleArgs& args);

}  // namespace cudp
