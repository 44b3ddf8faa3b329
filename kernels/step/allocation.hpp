#pragma once
// Random allocation: every example is used in exactly one of the steps of an epoch.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/random/random_block.hpp"

namespace cudp {

/// Maximum number of steps per epoch, so that a random word is rejected with probability below
/// 2^-8.
inline constexpr std::uint64_t kMaxEpochSteps = std::uint64_t{1} << 24;

/// Writes, for each example, the step 0 .. steps - 1 of the epoch in which it is used. The step
/// depends only on the random key, the epoch and the example's number i. Each step has the same
/// probability, exactly: with w word i of the stream, the step is floor(w steps / 2^32), unless (w
/// steps) mod 2^32 is below 2^32 mod steps (Lemire 2019, "Fast random integer generation in an
/// interval"). Such a word is rejected; attempt k reads word i of the stream numbered (allocation |
/// k << 8).
struct Allocate {
  RandomStream stream;  ///< Stream::allocation; its step is the number of the epoch
  std::uint32_t steps;  ///< steps of an epoch, 1..kMaxEpochSteps
  std::int64_t begin;   ///< first example, a multiple of 256
  std::int64_t end;     ///< one past the last example
  std::uint32_t* step;  ///< written: [end - begin]
};

/// Throws std::invalid_argument naming the member that is out of range. Requires end <= 2^32.
void validate(const Allocate& args);

/// Returns 2^32 mod steps: the number of low words that are rejected.
CUDP_HD std::uint32_t rejected_words(std::uint32_t steps) { return (0u - steps) % steps; }

/// Returns the step of example i, whose first word is `word`. rejected: rejected_words(steps).
CUDP_HD std::uint32_t allocated_step(RandomStream stream, std::int64_t i, std::uint32_t word,
                                     std::uint32_t steps, std::uint32_t rejected) {
  const auto purpose = static_cast<std::uint32_t>(stream.stream);
  for (std::uint32_t attempt = 1;; ++attempt) {
    const std::uint64_t product = std::uint64_t{word} * steps;
    if (static_cast<std::uint32_t>(product) >= rejected)
      return static_cast<std::uint32_t>(product >> 32);
    stream.stream = static_cast<Stream>(purpose | attempt << 8);
    std::uint32_t words[16];
    random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(i / 256 * 16 + i % 16), words);
    // All rows are read with a mask: an array with an index known only at run time would not stay
    // in registers.
    word = 0;
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      word |= words[row] & (row == i % 256 / 16 ? 0xffffffffu : 0u);
    }
  }
}

}  // namespace cudp
