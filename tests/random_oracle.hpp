#pragma once
// What kernels/random.hpp promises, written a second time, slowly, from RFC 8439, from the Philox
// paper and from the header's own words. Shares no code with the kernels.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/random.hpp"

namespace cudp::oracle {

inline std::array<std::uint32_t, 16> chacha20(const std::array<std::uint32_t, 8>& key,
                                              std::uint32_t counter,
                                              const std::array<std::uint32_t, 3>& nonce) {
  const char* const constants = "expand 32-byte k";
  std::array<std::uint32_t, 16> start{};
  for (int i = 0; i < 16; ++i)
    start[i / 4] |= static_cast<std::uint32_t>(constants[i]) << 8 * (i % 4);
  for (int i = 0; i < 8; ++i) start[4 + i] = key[i];
  start[12] = counter;
  for (int i = 0; i < 3; ++i) start[13 + i] = nonce[i];
  auto s = start;
  const auto add_and_turn = [&s](int into, int from, int turned, int by) {
    s[into] += s[from];
    s[turned] = std::rotl(s[turned] ^ s[into], by);
  };
  const auto quarter = [&](int a, int b, int c, int d) {
    add_and_turn(a, b, d, 16);
    add_and_turn(c, d, b, 12);
    add_and_turn(a, b, d, 8);
    add_and_turn(c, d, b, 7);
  };
  for (int round = 0; round < 20; ++round)
    for (int i = 0; i < 4; ++i)
      if (round % 2 == 0)
        quarter(i, 4 + i, 8 + i, 12 + i);
      else
        quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  for (int i = 0; i < 16; ++i) s[i] += start[i];
  return s;
}

inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return c;
}

inline std::uint32_t word(const RandomStream& s, std::uint64_t i) {
  const std::uint64_t tile = i / 256;
  const std::uint64_t row = i % 256 / 16;
  const std::uint64_t block = 16 * tile + i % 16;
  const auto stream = static_cast<std::uint32_t>(s.stream);
  const auto step = static_cast<std::uint32_t>(s.step);
  if (s.generator == Generator::chacha20)
    return chacha20(std::to_array(s.key.words), static_cast<std::uint32_t>(block),
                    {stream, step, static_cast<std::uint32_t>(s.step >> 32)})[row];
  const std::uint64_t counter = 4 * block + row / 4;
  return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                 step, stream},
                {s.key.words[0], s.key.words[1]})[row % 4];
}

struct Pair {
  long double even;
  long double odd;
};
/// The two normal numbers of words a (even row) and b (odd row).
inline Pair normals(std::uint32_t a, std::uint32_t b) {
  const long double u = (a * 256.0L + b % 256 + 0.5L) * 0x1p-40L;
  const long double angle = 2 * std::numbers::pi_v<long double> * (b / 256 + 0.5L) * 0x1p-24L;
  const long double radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}
inline long double normal(const RandomStream& s, std::uint64_t i) {
  const std::uint64_t even = i - i / 16 % 2 * 16;
  const Pair pair = normals(word(s, even), word(s, even + 16));
  return i == even ? pair.even : pair.odd;
}

}  // namespace cudp::oracle
