#pragma once
#include <cstdint>
#include <vector>

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

/// Returns the indices of the examples that a step draws by Poisson sampling, ascending: those
/// whose 32-bit random number is below the threshold. The sampling rate is threshold / 2^32. words:
/// the step's random stream for sampling. examples: number of examples, at most 2^32. The upper
/// half of example i's number is 16 bits of the stream's word 256 (i / 512) + i % 256: the low bits
/// for the first 256 examples of each 512, the high bits for the others. Its lower half is the same
/// 16 bits of the word 2^31 further on.
std::vector<std::uint32_t> poisson_sample(const RandomWords& words, std::uint64_t threshold,
                                          std::uint64_t examples);

}  // namespace cudp::verify
