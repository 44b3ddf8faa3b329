#pragma once
#include <cstdint>
#include <vector>

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

/// The examples below `examples` (2^32 at most), ascending, that a step's sampling stream draws at
/// the rate threshold / 2^32: those whose number of 32 bits is below the threshold.
/// Its upper half is of the stream's word 256 (i / 512) + i % 256, the word's low 16 bits for the
/// first 256 examples of each 512 and its high ones for the others; its lower half is those 16 bits
/// of the word 2^31 further.
std::vector<std::uint32_t> poisson_sample(const Words& words, std::uint64_t threshold,
                                          std::uint64_t examples);

}  // namespace cudp::verify
