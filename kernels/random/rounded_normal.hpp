#pragma once
// Gaussian noise that is exact: the integers nearest to s Z_j, Z_j independent standard normals.
// Every backend makes the same integers, because each is a function of the stream's words alone
// and not of how a library rounds.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Number i of a stream is K_i = the integer nearest to s Z_i. Two numbers are a pair, made by
/// Box-Muller from two reals U1, U2 in (0, 1), which are endless strings of the stream's bits:
///   Z = sqrt(-2 ln U1) cos 2 pi U2 in even number-rows, sqrt(-2 ln U1) sin 2 pi U2 in odd ones.
///
/// A tile of 256 words (random.hpp) gives 128 numbers: number i is in tile i / 128, number-row
/// (i % 128) / 16, lane i % 16. Pair p = number-row / 2 (0..3) of a lane takes words of that lane:
///   U1 = 0.(row 4p)(row 4p + 1)...,  U2 = 0.(row 4p + 2)(row 4p + 3)...   in base 2^32.
/// These 64 bits of each decide nearly always. Where they do not, round k = 1, 2, ... gives 256
/// more of each: words 0..7 of a generator block for U1 and 8..15 for U2, most significant first.
/// It is the block numbered as the pair is, of the stream numbered (stream | k << 8). A pair's
/// number has 32 bits, so that a stream has 2^33 rounded normals.
///
/// |Z| has no largest value: a small U1 takes as many bits as it needs.
struct RoundedNormals {
  RandomStream stream;
  double s;            ///< standard deviation of K, in [2^16, 2^40]
  std::int64_t begin;  ///< first number, a multiple of 128
  std::int64_t end;    ///< one past the last number, at most 2^33
  std::int64_t* out;   ///< [end - begin], written: out[i - begin] = K_i
};

inline constexpr double kMinRoundedNormalS = 0x1p16;
inline constexpr double kLargestRoundedNormalS = 0x1p40;

/// Throws std::invalid_argument naming the member that is out of range. Below s = 2^16 the error
/// bound of rounded_normal_math.hpp does not hold; above 2^40 too many pairs would be undecided.
void validate(const RoundedNormals& args);

/// The number of the pair that number i belongs to.
CUDP_HD std::int64_t rounded_pair_of(std::int64_t i) {
  return i / 128 * 64 + i % 128 / 32 * 16 + i % 16;
}
/// Its number that is made with the cosine; the one with the sine is 16 further.
CUDP_HD std::int64_t even_number_of(std::int64_t pair) {
  return pair / 64 * 128 + pair % 64 / 16 * 32 + pair % 16;
}

struct RoundedPair {
  std::int64_t even;  ///< with the cosine
  std::int64_t odd;   ///< with the sine
};

/// The source of a pair's further digits: words(source, k, out) writes round k's 16 words.
struct FurtherDigits {
  void (*words)(const void* source, std::uint32_t round, std::uint32_t* out);
  const void* source;
};

/// The pair whose first words, rows 4p..4p+3, are `words` [4]; s as in RoundedNormals. In multiple
/// precision, so it takes 20 us or more, on the host only.
/// Throws std::runtime_error where 832 bits of U1 and U2 leave it undecided, which a generator that
/// works does with probability below 2^-700.
RoundedPair exact_rounded_pair(const std::uint32_t* words, double s, const FurtherDigits& further);

/// Rounded normals with the further digits of pair number `pair` of a stream.
RoundedPair exact_rounded_pair(const RandomStream& stream, std::int64_t pair,
                               const std::uint32_t* words, double s);

/// For what a device left undecided (rounded_normal.cuh): writes both numbers of pairs [n] of a
/// stream to args.out, in host memory, in so far as they are in begin..end. Any order of pairs.
/// Throws as exact_rounded_pair, and std::invalid_argument where args are not valid.
void fill_undecided(const RoundedNormals& args, const std::uint32_t* pairs, std::int64_t n);

}  // namespace cudp
