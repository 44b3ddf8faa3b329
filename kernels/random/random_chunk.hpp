#pragma once
// Chunks of random numbers for kernels on the CPU, compiled for each SIMD level. random.hpp
// describes the streams.
#include <cstdint>

#include "kernels/common/vec_lanes.hpp"
#include "kernels/random/random.hpp"

namespace cudp::CUDP_SIMD {

/// Number of words that the CPU generates at once: two tiles of 256. Two ChaCha20 states fill
/// AVX-512's 32 registers and hide each other's latency (1.6 times the words per second of one tile
/// at a time, on Zen 5).
inline constexpr std::int64_t kRandomChunk = 512;

/// Writes words first .. first + 511 of a random stream (32 random bits each) to out [512].
/// Requires first to be a multiple of 256.
void words_chunk(const RandomStream& stream, std::int64_t first, std::uint32_t* out);
/// Writes standard normal numbers first .. first + 511 of a random stream to out [512]. Requires
/// first to be a multiple of 256.
void normals_chunk(const RandomStream& stream, std::int64_t first, float* out);

/// Writes numbers first .. first + 511 of a stream of rounded normals to out [512]. A rounded
/// normal is a normal random number with standard deviation s, rounded to the nearest integer.
/// Requires first to be a multiple of 128, and s in [2^16, 2^40]. Throws std::runtime_error if the
/// random generator does not work.
void rounded_normals_chunk(const RandomStream& stream, double s, std::int64_t first,
                           std::int64_t* out);

/// Computes 16 pairs of rounded normals (normal random numbers with standard deviation s, rounded
/// to integers) in double precision, and tests whether each pair is certainly rounded correctly.
/// words [4, 16]: four consecutive rows, 4p to 4p + 3, of a tile of 256 random words. Writes the
/// pairs' first numbers to even [16] and their second numbers to odd [16]. Returns 16 bits; bit i
/// is set if pair i is not certain. error_factor: enlarges the error bound, for tests.
unsigned try_rounded_pairs(const std::uint32_t* words, double s, std::int64_t* even,
                           std::int64_t* odd, double error_factor = 1.0);

}  // namespace cudp::CUDP_SIMD
