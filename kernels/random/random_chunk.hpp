#pragma once
// Chunks of random numbers for the CPU's kernels, compiled for each SIMD level; see random.hpp.
#include <cstdint>

#include "kernels/common/vec_lanes.hpp"
#include "kernels/random/random.hpp"

namespace cudp::CUDP_SIMD {

/// Numbers are made two tiles at a time: that many ChaCha20 states fill AVX-512's 32 registers and
/// hide each other's latency (1.6 times the words a second of one tile at a time, on Zen 5).
inline constexpr std::int64_t kRandomChunk = 512;

/// Words, or normal numbers, first .. first + 511 of a stream; first a multiple of 256; out [512].
void words_chunk(const RandomStream& stream, std::int64_t first, std::uint32_t* out);
void normals_chunk(const RandomStream& stream, std::int64_t first, float* out);

}  // namespace cudp::CUDP_SIMD
