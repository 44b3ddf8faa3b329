#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudp::verify {

/// Returns the examples with indices below `examples` (at most 2^32), ascending, that random
/// allocation puts into a step. Each example is in one of the `epoch_steps` steps of an epoch. With
/// w word i of the random stream 13 at step e, the number of the epoch, example i is in step
/// floor(w epoch_steps / 2^32) of it. If the remainder of that division is below 2^32 mod
/// epoch_steps, w is replaced by word i of the stream's next round of further digits.
std::vector<std::uint32_t> allocated_sample(std::string_view generator,
                                            const std::array<std::uint32_t, 8>& key,
                                            std::uint64_t epoch_steps, std::uint64_t step,
                                            std::uint64_t examples);

}  // namespace cudp::verify
