#pragma once
// Reference implementation of the random streams of kernels/random/random.hpp, word by word, from
// the generators' papers. It shares no code with the product.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/random/random.hpp"

namespace cudp::reference {

/// Returns 16 words of ChaCha20's key stream: RFC 8439, section 2.3.
inline std::array<std::uint32_t, 16> chacha20_block(const RandomKey& key, std::uint32_t counter,
                                                    std::array<std::uint32_t, 3> nonce) {
  std::array<std::uint32_t, 16> block = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (int i = 0; i < 8; ++i) block[4 + i] = key.words[i];
  block[12] = counter;
  for (int i = 0; i < 3; ++i) block[13 + i] = nonce[i];
  // Tests are compiled without inlining, and draw millions of words.
  std::uint32_t x[16];
  for (int i = 0; i < 16; ++i) x[i] = block[i];
  const auto rotate = [](std::uint32_t v, int n) __attribute__((always_inline)) {
    return v << n | v >> (32 - n);
  };
  const auto quarter = [&](int a, int b, int c, int d) __attribute__((always_inline)) {
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
  };
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) quarter(i, 4 + i, 8 + i, 12 + i);
    for (int i = 0; i < 4; ++i) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (int i = 0; i < 16; ++i) block[i] += x[i];
  return block;
}

/// Returns the four words of Philox4x32-10 (Salmon et al. 2011).
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

/// Returns word i of a stream.
inline std::uint32_t word(const RandomStream& s, std::uint64_t i) {
  const auto stream = static_cast<std::uint32_t>(s.stream);
  const auto low = static_cast<std::uint32_t>(s.step);
  const auto high = static_cast<std::uint32_t>(s.step >> 32);
  if (s.generator == Generator::philox) {
    const auto row = static_cast<std::uint32_t>(i % 256 / 16);
    const auto block = static_cast<std::uint32_t>(16 * (i / 256) + i % 16);
    return philox({4 * block + row / 4, block >> 30, low, stream},
                  {s.key.words[0], s.key.words[1]})[row % 4];
  }
  // Cache: most words are read one after the other, and neighbours lie in 16 blocks.
  struct Blocks {
    std::array<std::uint32_t, 12> of{};  // key, stream, step, place
    std::array<std::array<std::uint32_t, 16>, 16> words{};
    bool filled = false;
  };
  thread_local Blocks kept;
  const auto place = static_cast<std::uint32_t>(i / 256);
  std::array<std::uint32_t, 12> of = {0, 0, 0, 0, 0, 0, 0, 0, stream, low, high, place};
  std::copy(s.key.words, s.key.words + 8, of.begin());
  if (!kept.filled || kept.of != of) {
    for (std::uint32_t block = 0; block < 16; ++block)
      kept.words[block] = chacha20_block(s.key, 16 * place + block, {stream, low, high});
    kept.of = of;
    kept.filled = true;
  }
  return kept.words[i % 16][i % 256 / 16];
}

/// Returns whether example i is drawn at the sampling rate threshold / 2^32.
inline bool is_drawn(const RandomStream& s, std::uint64_t i, std::uint64_t threshold) {
  const std::uint64_t at = i / 512 * 256 + i % 256;
  const auto half = [&](std::uint64_t from) {
    return std::uint64_t{i / 256 % 2 == 0 ? word(s, from) % 65536 : word(s, from) / 65536};
  };
  const std::uint64_t first = half(at) * 65536;
  if (first + 65535 < threshold) return true;
  return first < threshold && first + half(at + 2147483648) < threshold;
}

/// Returns the step, of `steps` of an epoch, that example i is allocated to. Of the 2^32 words,
/// each step has floor(2^32 / steps); the multiples of `steps` shift them past the words that are
/// rejected, 2^32 mod steps in all.
inline std::uint64_t allocated_to(RandomStream s, std::uint64_t i, std::uint64_t steps) {
  const auto purpose = static_cast<std::uint32_t>(s.stream);
  const std::uint64_t all = std::uint64_t{1} << 32;
  for (std::uint32_t attempt = 0;; ++attempt) {
    s.stream = static_cast<Stream>(purpose + 256 * attempt);
    const std::uint64_t product = word(s, i) * steps;
    if (product % all >= all % steps) return product / all;
  }
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

/// Returns normal number i of a stream.
inline double normal(const RandomStream& s, std::uint64_t i) {
  const bool odd_row = i % 256 / 16 % 2 == 1;
  const std::uint64_t even = odd_row ? i - 16 : i;
  const NormalPair pair = normals(word(s, even), word(s, even + 16));
  return static_cast<double>(odd_row ? pair.odd : pair.even);
}

/// Returns rounded normal number i of a stream before it is rounded, divided by s: Box-Muller of
/// its first 128 bits in long double, accurate to about 1e-17.
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
