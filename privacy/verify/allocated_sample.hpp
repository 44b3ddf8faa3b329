#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudp::verify {

/// Returns the examples below `examples` (at most 2^32), ascending, that random allocation puts
/// into a step. Epochs have `epoch_steps` steps, and epoch e's stream is number 13 with step e. The
/// step of example i in its epoch is floor(w epoch_steps / 2^32), w word i of the stream, unless
/// the remainder of that division is below 2^32 mod epoch_steps. Then w is word i of the stream's
/// next round of further digits.
std::vector<std::uint32_t> allocated_sample(std::string_view generator,
                                            const std::array<std::uint32_t, 8>& key,
                                            std::uint64_t epoch_steps, std::uint64_t step,
                                            std::uint64_t examples);

}  // namespace cudp::verify
