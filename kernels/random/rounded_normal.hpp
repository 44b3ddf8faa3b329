#pragma once
// Exact Gaussian noise: the integers nearest to s Z_j, with Z_j independent standard normals. Every
// backend computes the same integers, because each depends only on the words of the stream and not
// on how a library rounds.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Writes rounded normals begin .. end - 1 of a stream. Number i is K_i, the integer nearest to s
/// Z_i, Z_i a standard normal number. Two numbers form a pair, computed by Box-Muller from two
/// reals U1, U2 in (0, 1), which are endless strings of the stream's bits:
///   Z = sqrt(-2 ln U1) cos 2 pi U2 in even number-rows, sqrt(-2 ln U1) sin 2 pi U2 in odd ones.
///
/// A tile of 256 words (random.hpp) gives 128 numbers: number i is in tile i / 128, number-row (i %
/// 128) / 16, lane i % 16. Pair p = number-row / 2 (0..3) of a lane uses words of that lane:
///   U1 = 0.(row 4p)(row 4p + 1)...,  U2 = 0.(row 4p + 2)(row 4p + 3)...   in base 2^32.
/// These 64 bits of each nearly always decide. If they do not, round k = 1, 2, ... gives 256 more
/// bits of each: words 0..7 of a generator block for U1 and 8..15 for U2, most significant first.
/// It is the block with the pair's number in the stream numbered (stream | k << 8). A pair's number
/// has 32 bits, so a stream has 2^33 rounded normals.
///
/// |Z| has no largest value: a small U1 uses as many bits as it needs.
struct RoundedNormals {
  RandomStream stream;
  double s;            ///< standard deviation of the integers K_i, in [2^16, 2^40]
  std::int64_t begin;  ///< first number, a multiple of 128
  std::int64_t end;    ///< one past the last number, at most 2^33
  std::int64_t* out;   ///< [end - begin], written: out[i - begin] = K_i
};

inline constexpr double kMinRoundedNormalS = 0x1p16;
inline constexpr double kLargestRoundedNormalS = 0x1p40;

/// Throws std::invalid_argument naming the member that is out of range. Below s = 2^16 the error
/// bound of rounded_normal_math.hpp does not hold. Above 2^40 too many pairs would be undecided.
void validate(const RoundedNormals& args);

/// Returns the index of the pair that rounded normal number i belongs to.
CUDP_HD std::int64_t rounded_pair_of(std::int64_t i) {
  return i / 128 * 64 + i % 128 / 32 * 16 + i % 16;
}
/// Returns the index of a pair's first rounded normal (the one with the cosine). The second one
/// (with the sine) has an index 16 larger.
CUDP_HD std::int64_t even_number_of(std::int64_t pair) {
  return pair / 64 * 128 + pair % 64 / 16 * 32 + pair % 16;
}

struct RoundedPair {
  std::int64_t even;  ///< the rounded normal with the cosine
  std::int64_t odd;   ///< the rounded normal with the sine
};

/// Source of more random bits for a pair whose first bits do not decide the rounding: words(source,
/// k, out) writes the 16 words of round k = 1, 2, ... to out.
struct FurtherDigits {
  void (*words)(const void* source, std::uint32_t round, std::uint32_t* out);
  const void* source;
};

/// Returns the pair of rounded normals whose first words are `words` [4]; s: standard deviation.
/// Uses multiple precision, so it takes 20 us or more. Host only. Throws std::runtime_error if 832
/// bits of each of the pair's two uniform numbers do not decide. With a working generator the
/// probability is below 2^-700.
RoundedPair exact_rounded_pair(const std::uint32_t* words, double s, const FurtherDigits& further);

/// Returns pair number `pair` of a stream's rounded normals, whose first words are `words` [4].
/// Further bits come from the stream.
RoundedPair exact_rounded_pair(const RandomStream& stream, std::int64_t pair,
                               const std::uint32_t* words, double s);

/// Computes the pairs that a device left undecided (rounded_normal.cuh) in multiple precision.
/// pairs [n]: their indices in the stream, in any order. Writes their numbers to args.out, in host
/// memory, if they are in begin..end. Throws std::runtime_error if the generator is broken, and
/// std::invalid_argument if args are not valid.
void fill_undecided(const RoundedNormals& args, const std::uint32_t* pairs, std::int64_t n);

}  // namespace cudp
