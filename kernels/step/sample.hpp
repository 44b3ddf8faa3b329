#pragma once
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/step_cursor.hpp"
#include "kernels/step/tally.hpp"

namespace cudp {

/// Number of consecutive examples that get their upper 16 random bits from one tile of 256 words of
/// 32 bits.
inline constexpr std::int64_t kSampleTile = 512;
/// Index in the random stream of the first word that is used for the lower 16 random bits of
/// examples.
inline constexpr std::int64_t kLowerBits = std::int64_t{1} << 31;

/// Value in SampleArgs::index for an example that is held out, so that it is never drawn.
inline constexpr std::uint32_t kHeldOut = 0xffffffffu;

/// Consecutive steps first, first + 1, ..., end - 1 of a run.
struct StepRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  CUDP_HD bool has(std::uint64_t step) const { return first <= step && step < end; }
};

/// The step of its epoch in which each example is used, for several consecutive epochs of random
/// allocation, in device memory.
struct StoredEpochs {
  /// [epochs, tiles, 256], from example SampleArgs::begin on; epoch e is at index e % epochs.
  /// kHeldOut for an example that is held out, and after the last example. Aligned to 16 bytes.
  const std::uint32_t* step = nullptr;
  std::uint32_t epochs = 1;          ///< number of epochs in `step`
  const StepRange* range = nullptr;  ///< the steps of these epochs; in device memory
};

/// Arguments of a kernel that draws a batch. With Poisson sampling every example is drawn
/// independently with probability threshold / 2^32, exactly: example i is drawn if a number of 32
/// random bits is below `threshold`. The upper 16 bits of that number are one half of word 256
/// floor(i / 512) + i % 256 of the stream: the low half if i % 512 < 256, otherwise the high half.
/// Its lower 16 bits are the same half of the word that is 2^31 further in the stream. They are
/// generated only if the upper bits equal those of the threshold, for one example in 65,536. No two
/// examples share a bit: i is below 2^32, so all upper bits are in words below 2^31.
///
/// With importance sampling (norms is not null), example i is drawn if word i of the stream is
/// below candidate_threshold(rule, norms[i]).
struct SampleArgs {
  RandomStream stream;      ///< Stream::sampling at this step
  std::uint64_t threshold;  ///< 0..2^32; the sampling rate is threshold / 2^32
  std::int64_t begin;       ///< first example, a multiple of 512
  std::int64_t end;         ///< one past the last example
  std::uint32_t* drawn;     ///< written: indices minus `first`, ascending; capacity end - begin
  const float* norms = nullptr;  ///< norms of examples first to end - 1, or null
  ImportanceRule rule = {};      ///< used with norms only
  std::int64_t first = 0;        ///< example with index 0 in drawn and norms, at most begin
  /// With random allocation, number of steps of an epoch; 0 for the other kinds of sampling. Used
  /// by the kernels of a CUDA device only. With random allocation the stream must be
  /// Stream::allocation, and its step is the step whose batch is drawn.
  std::uint32_t epoch_steps = 0;
  /// With random allocation, the steps of the examples in the epoch of the drawn step, and in other
  /// epochs.
  StoredEpochs allocated = {};
  /// For each example first, first + 1, ..., end - 1 of the random stream: its index in the stored
  /// training set, which is written to `drawn` and used for `norms`; ascending. kHeldOut for an
  /// example that is held out, and so never drawn. Null: no example is held out, and the index is
  /// that of the stream minus `first`. CUDA only.
  const std::uint32_t* index = nullptr;
};

/// Scratch memory and result of sampling on a device. A tile is 256 examples; there are tiles =
/// ceil((end - begin) / 256) of them.
///
/// If `cursor` is null, a launch may draw the batches of several consecutive steps, gridDim.y of
/// them, from the step of SampleArgs::stream on. Every array then has a part for each step: flags
/// [steps, tiles, 16], counts [steps, tiles + 1], count [steps], drawn [steps, list_size].
struct SampleSpace {
  std::uint16_t* flags;  ///< [tiles, 16], bit l of row r: example 16 r + l of the tile is drawn
  /// Number of examples drawn in each tile, [tiles + 1]. After sample_scan_kernel (scanned): number
  /// drawn before each tile, and in the last entry the total.
  std::uint32_t* counts;
  std::uint32_t* count;                   ///< number of examples drawn; 0 if the step may not run
  bool scanned = false;                   ///< sample_scan_kernel runs between the two kernels
  std::uint32_t list_size = 0xffffffffu;  ///< capacity of a step's list; the rest is only counted
  StepRange* range = nullptr;             ///< written: the steps whose batches are drawn; or null
  /// Progress of the run: the kernel draws the batch of the run's next step and starts that step.
  /// Null: the kernel draws the batch of the step of SampleArgs::stream and starts no step; the
  /// members below are then not used.
  StepCursor* cursor = nullptr;
  ListedStep* list = nullptr;  ///< [steps of the run]
  std::uint32_t capacity = 0;  ///< a larger batch makes the run fail
  std::uint32_t launch_capacity =
      0xffffffffu;                   ///< a larger batch is not started: launches would truncate it
  bool has_separate_update = false;  ///< whether the step's update is a separate launch
  const Tally* counted = nullptr;    ///< totals so far; used if the clipping norm is adaptive
};

/// Batches that were drawn in advance, in one launch, for a range of consecutive steps of a run.
struct BatchesAhead {
  const StepRange* range;         ///< steps whose batches were drawn, in device memory
  const std::uint32_t* counts;    ///< [steps], number of examples drawn in each
  const std::uint32_t* examples;  ///< [steps, list_size], SampleArgs::drawn of each step
  std::uint32_t list_size;
};

/// The step after the current one, which the last kernel of the current step starts
/// (kernels/step/finish.hpp). It is started only if its batch was drawn ahead and the run goes on.
struct NextStep {
  BatchesAhead batches{};
  SampleSpace space{};
  std::uint32_t* drawn = nullptr;  ///< [capacity of the step], written; null: no step is started
};

/// Number of tiles of 256 examples (4 million examples in all) above which a separate kernel,
/// sample_scan_kernel, computes where each tile's drawn examples begin in the list. With fewer
/// tiles, each block of the second sampling kernel computes this for itself.
inline constexpr std::int64_t kScannedTiles = std::int64_t{1} << 14;

/// Throws std::invalid_argument, with the name of the member, if a member is out of range. end must
/// be at most 2^32.
void validate(const SampleArgs& args);

}  // namespace cudp
