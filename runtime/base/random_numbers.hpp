#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"

namespace cudp {

/// Returns 32-bit words 0 to count - 1 of a random stream. For the few random numbers that are
/// drawn on the host, outside an engine.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::size_t count);
/// Returns 32-bit words begin to begin + count - 1 of a random stream. Requires that `begin` is a
/// multiple of 128.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::int64_t begin,
                                        std::size_t count);

/// Returns exact Gaussian noise with standard deviation s: integers K_j for j = begin .. begin +
/// count - 1, where K_j is the integer nearest to s Z_j, and Z_j is number j of a random stream of
/// standard normal numbers. Requires that `begin` is a multiple of 128.
/// kernels/random/rounded_normal.hpp states the limits of s, and how the integers are computed.
std::vector<std::int64_t> rounded_normals(const RandomStream& stream, double s, std::int64_t begin,
                                          std::size_t count);

/// Returns standard normal numbers 0 to count - 1 of a random stream.
std::vector<float> normal_numbers(const RandomStream& stream, std::size_t count);

}  // namespace cudp
