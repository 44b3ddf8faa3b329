#pragma once
// Random allocation: every example is used in exactly one of the steps of an epoch.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/random/random_block.hpp"

namespace cudp {

/// Maximum number of steps per epoch. It keeps the probability below 2^-8 that a random word is
/// rejected when an example's step is drawn.
inline constexpr std::uint64_t kMaxEpochSteps = std::uint64_t{1} << 24;

/// Allocates examples to the steps of an epoch at random: writes for each example the number, 0 ..
/// steps - 1, of the one step in which the example is used. The step depends only on the random
/// key, the epoch and the example's index i. All steps have exactly the same probability. With w
/// the i-th word (32 random bits) of the stream, the step is floor(w steps / 2^32), unless (w
/// steps) mod 2^32 is below 2^32 mod steps (Lemire 2019, "Fast random integer generation in an
/// interval"). In that case w is rejected, and the k-th further attempt uses the i-th word of
/// another stream, number (allocation | k << 8).
struct Allocate {
  RandomStream stream;  ///< Stream::allocation; its step is the number of the epoch
  std::uint32_t steps;  ///< steps of an epoch, 1..kMaxEpochSteps
  std::int64_t begin;   ///< first example, a multiple of 256
  std::int64_t end;     ///< one past the last example
  /// Written: [end - begin]. By the kernel of a CUDA device: StoredEpochs::step.
  std::uint32_t* step;
  /// SampleArgs::index of the examples. Examples that are held out get kHeldOut in place of a step.
  /// CUDA only.
  const std::uint32_t* index = nullptr;
};

/// Throws std::invalid_argument, with the name of the member, if a member is out of range. end must
/// be at most 2^32.
void validate(const Allocate& args);

/// Returns 2^32 mod steps. A random word w is rejected if (w steps) mod 2^32 is below this number,
/// so that all steps are equally likely.
CUDP_HD std::uint32_t rejected_words(std::uint32_t steps) { return (0u - steps) % steps; }

/// Returns whether a random word must be rejected. rejected: the result of rejected_words(steps).
CUDP_HD bool is_rejected(std::uint32_t word, std::uint32_t steps, std::uint32_t rejected) {
  return word * steps < rejected;
}

/// Returns the step of the epoch that a random word selects, floor(word steps / 2^32). Requires
/// that the word is not rejected.
CUDP_HD std::uint32_t selected_step(std::uint32_t word, std::uint32_t steps) {
  return static_cast<std::uint32_t>(std::uint64_t{word} * steps >> 32);
}

/// Returns the step of the epoch to which example i is allocated if its first random word, word i
/// of the stream, is rejected. rejected: the result of rejected_words(steps).
CUDP_HD std::uint32_t step_of_further_words(RandomStream stream, std::int64_t i,
                                            std::uint32_t steps, std::uint32_t rejected) {
  const auto purpose = static_cast<std::uint32_t>(stream.stream);
  for (std::uint32_t attempt = 1;; ++attempt) {
    stream.stream = static_cast<Stream>(purpose | attempt << 8);
    std::uint32_t words[16];
    random_block<ScalarLanes>(stream, static_cast<std::uint32_t>(i / 256 * 16 + i % 16), words);
    // All rows are read with a mask: an array with an index known only at run time would not stay
    // in registers.
    std::uint32_t word = 0;
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      word |= words[row] & (row == i % 256 / 16 ? 0xffffffffu : 0u);
    }
    if (!is_rejected(word, steps, rejected)) return selected_step(word, steps);
  }
}

/// Returns the step of the epoch to which example i is allocated. word: the first random word for
/// the example, word i of the stream. rejected: the result of rejected_words(steps).
CUDP_HD std::uint32_t allocated_step(const RandomStream& stream, std::int64_t i, std::uint32_t word,
                                     std::uint32_t steps, std::uint32_t rejected) {
  if (is_rejected(word, steps, rejected)) return step_of_further_words(stream, i, steps, rejected);
  return selected_step(word, steps);
}

}  // namespace cudp
