#pragma once
#include <cstdint>

#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Number of examples per tile of 256 words, and index of the first word used for lower bits.
inline constexpr std::int64_t kSampleTile = 512;
inline constexpr std::int64_t kLowerBits = std::int64_t{1} << 31;

/// Poisson sampling: every example is drawn independently with probability threshold / 2^32
/// exactly: if a number of 32 random bits is below `threshold`. The number's upper 16 bits are one
/// half of word 256 (i / 512) + i % 256 of the stream: the low half if i % 512 < 256, otherwise the
/// high half. Its lower 16 bits are the same half of the word 2^31 further. They are generated only
/// for the one example in 65,536 whose upper bits equal the threshold's. No two examples share a
/// bit: i is below 2^32, so upper bits are in words below 2^31.
///
/// With norms (importance.hpp): example i is drawn if word i is below candidate_threshold(rule,
/// norms[i]).
struct SampleArgs {
  RandomStream stream;      ///< Stream::sampling at this step
  std::uint64_t threshold;  ///< 0..2^32; the sampling rate is threshold / 2^32
  std::int64_t begin;       ///< first example, a multiple of 512
  std::int64_t end;         ///< one past the last example
  std::uint32_t* drawn;     ///< written: indices minus `first`, ascending; capacity end - begin
  const float* norms = nullptr;  ///< norms of examples first to end - 1, or null
  ImportanceRule rule = {};      ///< used with norms only
  std::int64_t first = 0;        ///< example with index 0 in drawn and norms, at most begin
};

/// Throws std::invalid_argument naming the member that is out of range. end is at most 2^32.
void validate(const SampleArgs& args);

}  // namespace cudp
