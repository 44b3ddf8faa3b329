#pragma once
// The random streams of kernels/random/random.hpp, word by word from the generators' own papers;
// shares no code with the product.
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/random/random.hpp"

namespace cudp::reference {

/// RFC 8439, section 2.3: 16 words of key stream.
inline std::array<std::uint32_t, 16> chacha20_block(const RandomKey& key, std::uint32_t counter,
                                                    std::array<std::uint32_t, 3> nonce) {
  std::array<std::uint32_t, 16> start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (int i = 0; i < 8; ++i) start[4 + i] = key.words[i];
  start[12] = counter;
  for (int i = 0; i < 3; ++i) start[13 + i] = nonce[i];
  std::array<std::uint32_t, 16> x = start;
  const auto rotate = [](std::uint32_t v, int n) { return v << n | v >> (32 - n); };
  const auto quarter = [&](int a, int b, int c, int d) {
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
  };
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) quarter(i, 4 + i, 8 + i, 12 + i);
    for (int i = 0; i < 4; ++i) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (int i = 0; i < 16; ++i) x[i] += start[i];
  return x;
}

/// Philox4x32-10. Salmon et al. 2011.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * counter[0];
    const std::uint64_t b = 0xCD9E8D57ull * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Word i of a stream.
inline std::uint32_t word(const RandomStream& s, std::uint64_t i) {
  const auto row = static_cast<std::uint32_t>(i % 256 / 16);
  const auto block = static_cast<std::uint32_t>(16 * (i / 256) + i % 16);
  const auto stream = static_cast<std::uint32_t>(s.stream);
  const auto low = static_cast<std::uint32_t>(s.step);
  const auto high = static_cast<std::uint32_t>(s.step >> 32);
  if (s.generator == Generator::chacha20)
    return chacha20_block(s.key, block, {stream, low, high})[row];
  return philox({4 * block + row / 4, block >> 30, low, stream},
                {s.key.words[0], s.key.words[1]})[row % 4];
}

/// Whether example i is drawn at the sampling rate threshold / 2^32.
inline bool is_drawn(const RandomStream& s, std::uint64_t i, std::uint64_t threshold) {
  const std::uint64_t at = i / 512 * 256 + i % 256;
  const auto half = [&](std::uint64_t from) {
    return std::uint64_t{i / 256 % 2 == 0 ? word(s, from) % 65536 : word(s, from) / 65536};
  };
  const std::uint64_t first = half(at) * 65536;
  if (first + 65535 < threshold) return true;
  return first < threshold && first + half(at + 2147483648) < threshold;
}

/// The two normal numbers of words a (even row) and b (odd row).
struct NormalPair {
  long double even;
  long double odd;
};
inline NormalPair normals(std::uint32_t a, std::uint32_t b) {
  const long double u = (a * 256.0L + b % 256 + 0.5L) * 0x1p-40L;
  const long double angle = 2 * std::numbers::pi_v<long double> * (b / 256 + 0.5L) * 0x1p-24L;
  const long double radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Normal number i of a stream.
inline double normal(const RandomStream& s, std::uint64_t i) {
  const bool odd_row = i % 256 / 16 % 2 == 1;
  const std::uint64_t even = odd_row ? i - 16 : i;
  const NormalPair pair = normals(word(s, even), word(s, even + 16));
  return static_cast<double>(odd_row ? pair.odd : pair.even);
}

/// Rounded normal number i of a stream before it is rounded, over s: Box-Muller of its first 128
/// bits in long double, so within 1e-17 or so of the number whose nearest integer it stands for.
inline long double unrounded_normal(const RandomStream& s, std::uint64_t i) {
  const std::uint64_t tile = i / 128;
  const std::uint64_t row = i % 128 / 16;
  const std::uint64_t first = 256 * tile + 64 * (row / 2) + i % 16;
  const auto real = [&](std::uint64_t at) {
    return (word(s, at) + (word(s, at + 16) + 0.5L) * 0x1p-32L) * 0x1p-32L;
  };
  const long double radius = std::sqrt(-2 * std::log(real(first)));
  const long double angle = 2 * std::numbers::pi_v<long double> * real(first + 32);
  return radius * (row % 2 == 1 ? std::sin(angle) : std::cos(angle));
}
inline double rounded_normal(const RandomStream& s, std::uint64_t i) {
  return static_cast<double>(unrounded_normal(s, i));
}

}  // namespace cudp::reference
