#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"

namespace cudp {

/// Words 0..count-1 of a stream, for the few random numbers that are not drawn inside an engine.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::size_t count);
/// Words begin to begin + count - 1. begin: a multiple of 128.
std::vector<std::uint32_t> random_words(const RandomStream& stream, std::int64_t begin,
                                        std::size_t count);

/// The integers nearest to s Z_j, j = begin .. begin + count - 1, of a stream: exact Gaussian noise
/// (kernels/random/rounded_normal.hpp, which says what is thrown). begin: a multiple of 128.
std::vector<std::int64_t> rounded_normals(const RandomStream& stream, double s, std::int64_t begin,
                                          std::size_t count);

/// Normal numbers 0..count-1 of a stream.
std::vector<float> normal_numbers(const RandomStream& stream, std::size_t count);

}  // namespace cudp
