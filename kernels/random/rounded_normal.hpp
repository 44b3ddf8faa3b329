#pragma once
// Exact Gaussian noise: the integers nearest to s Z_j, with Z_j independent standard normals. Every
// backend computes the same integers, because each depends only on the words of the stream and not
// on how a library rounds.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Writes rounded normals begin .. end - 1 of a stream. Number i is K_i, the integer nearest to s
/// Z_i, with s the standard deviation and Z_i a standard normal number. Two numbers form a pair,
/// computed by Box-Muller from two reals U1, U2 in (0, 1), which are endless strings of the
/// stream's bits: Z = sqrt(-2 ln U1) cos 2 pi U2 in even rows, sqrt(-2 ln U1) sin 2 pi U2 in odd
/// rows.
///
/// A tile of 256 words (random.hpp) gives 128 numbers, in 8 rows of 16 lanes: number i is in tile
/// i / 128, row (i % 128) / 16, lane i % 16. Pair p = row / 2 (0..3) of a lane uses words of that
/// lane:
///   U1 = 0.(word row 4p)(word row 4p + 1)...,  U2 = 0.(word row 4p + 2)(word row 4p + 3)...
/// in base 2^32. These 64 bits of each nearly always decide the rounding. If they do not, round
/// k = 1, 2, ... gives 256 more bits of each: words 0..7 of a generator block for U1 and 8..15 for
/// U2, most significant first. It is the block with the pair's number in the stream numbered
/// (stream | k << 8). A pair's number has 32 bits, so a stream has 2^33 rounded normals.
///
/// |Z| has no largest value: a small U1 uses as many bits as it needs.
struct RoundedNormals {
  RandomStream stream;
  double s;            ///< standard deviation of the integers K_i, in [2^16, 2^40]
  std::int64_t begin;  ///< first number, a multiple of 128
  std::int64_t end;    ///< one past the last number, at most 2^33
  std::int64_t* out;   ///< [end - begin], written: out[i - begin] = K_i
};

/// Smallest and largest standard deviation s that RoundedNormals may have.
inline constexpr double kMinRoundedNormalS = 0x1p16;
inline constexpr double kLargestRoundedNormalS = 0x1p40;

/// Throws std::invalid_argument, with the name of the member, if a member is out of range. The
/// standard deviation s must be in [2^16, 2^40]: below, the error bound of the computation in
/// double does not hold; above, double leaves too many roundings undecided.
void validate(const RoundedNormals& args);

/// Returns the index of the pair to which rounded normal number i of a stream belongs.
CUDP_HD std::int64_t rounded_pair_of(std::int64_t i) {
  return i / 128 * 64 + i % 128 / 32 * 16 + i % 16;
}
/// Returns the index in the stream of the first number of a pair of rounded normals, the one
/// computed with the cosine. The second one, computed with the sine, has an index that is 16
/// larger.
CUDP_HD std::int64_t even_number_of(std::int64_t pair) {
  return pair / 64 * 128 + pair % 64 / 16 * 32 + pair % 16;
}

/// Two independent normal random numbers, each rounded to an integer. They are computed together,
/// by the Box-Muller transform.
struct RoundedPair {
  std::int64_t even;  ///< rounded normal computed with the cosine
  std::int64_t odd;   ///< rounded normal computed with the sine
};

/// Source of more random bits for a pair of rounded normals whose first bits are too few to decide
/// the rounding. words(source, k, out) writes 16 more random words to out; k = 1, 2, ... numbers
/// the calls for one pair.
struct FurtherDigits {
  void (*words)(const void* source, std::uint32_t round, std::uint32_t* out);
  const void* source;
};

/// Returns a pair of rounded normals (normal random numbers with standard deviation s, rounded to
/// integers). words [4]: the pair's first random words. Computes in multiple precision, so it takes
/// 20 us or more. Host only. Throws std::runtime_error if 832 bits of each of the pair's two
/// uniform numbers do not decide the rounding; with a working generator the probability is below
/// 2^-700. further: source of more random bits, for the case that the first words are too few.
RoundedPair exact_rounded_pair(const std::uint32_t* words, double s, const FurtherDigits& further);

/// Returns pair number `pair` of a stream's rounded normals (normal random numbers with standard
/// deviation s, rounded to integers). words [4]: the pair's first random words. If these do not
/// decide the rounding, further bits are taken from the stream. Computes in multiple precision.
RoundedPair exact_rounded_pair(const RandomStream& stream, std::int64_t pair,
                               const std::uint32_t* words, double s);

}  // namespace cudp
