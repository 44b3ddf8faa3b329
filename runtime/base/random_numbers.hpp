#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"

namespace cudp {

/// Returns words 0 to count - 1 of a stream. Meant for the few random numbers that are not drawn
/// inside an engine.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::size_t count);
/// Returns words begin to begin + count - 1 of a stream. Requires begin to be a multiple of 128.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::int64_t begin,
                                        std::size_t count);

/// Returns exact Gaussian noise: the integers nearest to s Z_j, j = begin .. begin + count - 1, of
/// a stream. Requires begin to be a multiple of 128. kernels/random/rounded_normal.hpp has the
/// limits of s and the errors.
std::vector<std::int64_t> rounded_normals(const RandomStream& stream, double s, std::int64_t begin,
                                          std::size_t count);

/// Returns standard normal numbers 0 to count - 1 of a stream.
std::vector<float> normal_numbers(const RandomStream& stream, std::size_t count);

}  // namespace cudp
