#pragma once
#include <cstdint>

#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/step_cursor.hpp"
#include "kernels/step/tally.hpp"

namespace cudp {

/// Examples a tile of 256 words, and the word from which on lower bits are taken.
inline constexpr std::int64_t kSampleTile = 512;
inline constexpr std::int64_t kLowerBits = std::int64_t{1} << 31;

/// Poisson sampling: every example is drawn with probability threshold / 2^32 exactly and
/// independently of the others, when a number of 32 random bits is below `threshold`. The number's
/// upper 16 bits are a half of word 256 (i / 512) + i % 256 of the stream, the low half where
/// i % 512 < 256 and the high one elsewhere; its lower 16 bits are the same half of the word 2^31
/// further, and are made only for the one example in 65,536 whose upper bits are the threshold's.
/// No two examples share a bit: i is below 2^32, so that upper bits lie below word 2^31.
///
/// With norms (importance.hpp): when word i is below candidate_threshold(rule, norms[i]).
struct SampleArgs {
  RandomStream stream;           ///< Stream::sampling at this step
  std::uint64_t threshold;       ///< 0..2^32; the sampling rate is threshold / 2^32
  std::int64_t begin;            ///< first example, a multiple of 512
  std::int64_t end;              ///< one past the last example
  std::uint32_t* drawn;          ///< out, less `first`, ascending; room for end - begin
  const float* norms = nullptr;  ///< of examples first to end - 1, or null
  ImportanceRule rule = {};      ///< with norms
  std::int64_t first = 0;        ///< the example that is number 0 here, at most begin
};

/// Scratch and result in device memory. A tile is 256 examples: tiles = ceil((end - begin) / 256).
struct SampleSpace {
  std::uint16_t* flags;   ///< [tiles, 16], bit l of row r: example 16 r + l of the tile is drawn
  std::uint32_t* counts;  ///< [tiles + 1], examples drawn a tile; scanned: those before it, and all
  std::uint32_t* count;   ///< [1], how many were drawn; 0 where no step may be taken with them
  bool scanned = false;   ///< sample_scan_kernel runs in between
  /// The run whose next step it is, or null for the step that SampleArgs::stream has. The rest is
  /// for that.
  StepCursor* cursor = nullptr;
  ListedStep* list = nullptr;        ///< [steps of the run]
  std::uint32_t capacity = 0;        ///< a larger batch makes the run fail
  std::uint32_t room = 0xffffffffu;  ///< a larger batch is not begun: the launches would cut it
  bool has_tail = false;             ///< the step's update is a launch of its own
  const Tally* counted = nullptr;    ///< [1], where the clipping norm moves
};

/// Above so many tiles (4 M examples) the counts are scanned by a kernel of their own.
inline constexpr std::int64_t kScannedTiles = std::int64_t{1} << 14;

/// Throws std::invalid_argument naming the member that is out of range. end is at most 2^32.
void validate(const SampleArgs& args);

}  // namespace cudp
