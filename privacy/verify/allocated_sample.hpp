#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudp::verify {

/// Returns the examples that random allocation puts into step `step`, ascending. Each example is in
/// one random step of each epoch of `epoch_steps` steps. generator, key: of the run's random
/// numbers. examples: number of examples, at most 2^32. In epoch e, example i is in step floor(w
/// epoch_steps / 2^32), counted from the first step of the epoch. w: word i of random stream 13
/// (RandomWords) with e as the step. If (w epoch_steps) mod 2^32 is below 2^32 mod epoch_steps,
/// which would favour some steps, w is replaced by word i of the stream's next round.
std::vector<std::uint32_t> allocated_sample(std::string_view generator,
                                            const std::array<std::uint32_t, 8>& key,
                                            std::uint64_t epoch_steps, std::uint64_t step,
                                            std::uint64_t examples);

}  // namespace cudp::verify
