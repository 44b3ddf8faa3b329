#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

/// Two rounded normal numbers: the integers nearest to s Z0 and s Z1. Z0, Z1 are standard normal,
/// by Box-Muller from uniform reals U1, U2 in (0, 1) with infinitely many bits:
///   Z0 = sqrt(-2 ln U1) cos 2 pi U2,  Z1 = sqrt(-2 ln U1) sin 2 pi U2.
struct NormalPair {
  std::int64_t cosine = 0;
  std::int64_t sine = 0;
  bool operator==(const NormalPair&) const = default;
};

/// Callback that returns more random bits of U1 and U2, for round k = 1, 2, ...: 256 bits of U1,
/// then 256 of U2, most significant first.
using MoreBits = std::function<std::array<std::uint32_t, 16>(std::uint32_t round)>;

/// Returns the integers nearest to s Z0 and s Z1 (see NormalPair). words: the first 64 bits of U1,
/// then of U2, most significant first. s: standard deviation, 0 < s <= 2^41. more: returns further
/// bits. Throws std::runtime_error if 3 rounds of bits do not determine the integers, which has a
/// negligible probability with a working generator.
NormalPair rounded_normal_pair(const std::array<std::uint32_t, 4>& words, double s,
                               const MoreBits& more);
/// Returns the result of rounded_normal_pair(), computed in multiple precision from the start.
/// Tests compare the two.
NormalPair rounded_normal_pair_slowly(const std::array<std::uint32_t, 4>& words, double s,
                                      const MoreBits& more);

/// Returns rounded normal numbers 0 .. count - 1 of a random stream, with standard deviation s.
/// Each tile of 256 words (RandomWords) makes 128 numbers, in 8 rows of 16 lanes: number i is in
/// tile i / 128, row (i % 128) / 16 and lane i % 16. The numbers in rows 2 p (cosine) and 2 p + 1
/// (sine) of a lane are a pair, made of the lane's words in rows 4 p .. 4 p + 3 of the tile. Round
/// k of a pair's further digits is words 0..7 and 8..15 of block 64 tile + 16 p + lane of stream |
/// k << 8.
std::vector<std::int64_t> rounded_normals(const RandomWords& words, double s, std::uint64_t count);

}  // namespace cudp::verify
