#include "privacy/verify/generator.hpp"

#include <bit>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace cudp::verify {

std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 8>& key,
                                             std::uint32_t counter,
                                             const std::array<std::uint32_t, 3>& nonce) {
  std::array<std::uint32_t, 16> start{};
  constexpr std::string_view kConstants = "expand 32-byte k";
  for (std::size_t i = 0; i < 16; ++i)
    start[i / 4] |= static_cast<std::uint32_t>(static_cast<unsigned char>(kConstants[i]))
                    << (8 * (i % 4));
  for (std::size_t i = 0; i < 8; ++i) start[4 + i] = key[i];
  start[12] = counter;
  for (std::size_t i = 0; i < 3; ++i) start[13 + i] = nonce[i];

  std::array<std::uint32_t, 16> x = start;
  const auto quarter_round = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    const auto half = [&](std::size_t sum, std::size_t term, std::size_t mixed, int left) {
      x[sum] += x[term];
      x[mixed] = std::rotl(x[mixed] ^ x[sum], left);
    };
    half(a, b, d, 16);
    half(c, d, b, 12);
    half(a, b, d, 8);
    half(c, d, b, 7);
  };
  for (int round = 0; round < 20; ++round)
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t diagonal = round % 2 == 0 ? 0 : 1;  // mixes columns and diagonals in turn
      quarter_round(i, 4 + (i + diagonal) % 4, 8 + (i + 2 * diagonal) % 4,
                    12 + (i + 3 * diagonal) % 4);
    }
  for (std::size_t i = 0; i < 16; ++i) x[i] += start[i];
  return x;
}

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    counter = {high(second) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               high(first) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomWords::RandomWords(std::string_view generator, const std::array<std::uint32_t, 8>& key,
                         std::uint32_t stream, std::uint64_t step)
    : philox_(generator == "philox"), key_(key), stream_(stream), step_(step) {
  if (!philox_ && generator != "chacha20")
    throw std::invalid_argument("generator: expected chacha20 or philox, found '" +
                                std::string(generator) + "'");
  if (philox_ && step >> 32 != 0)
    throw std::invalid_argument("generator: expected a step below 2^32 for philox, found " +
                                std::to_string(step));
}

std::array<std::uint32_t, 16> RandomWords::block(std::uint32_t number, std::uint32_t round) const {
  const std::uint32_t stream = stream_ | round << 8;
  const auto low = static_cast<std::uint32_t>(step_);
  if (!philox_)
    return chacha20_block(key_, number, {stream, low, static_cast<std::uint32_t>(step_ >> 32)});
  std::array<std::uint32_t, 16> words{};
  for (std::size_t q = 0; q < 4; ++q) {
    const std::uint64_t counter = 4 * std::uint64_t{number} + q;
    const auto four = philox4x32_10({static_cast<std::uint32_t>(counter),
                                     static_cast<std::uint32_t>(counter >> 32), low, stream},
                                    {key_[0], key_[1]});
    for (std::size_t i = 0; i < 4; ++i) words[4 * q + i] = four[i];
  }
  return words;
}

std::vector<std::uint32_t> RandomWords::first(std::uint64_t count) const {
  std::vector<std::uint32_t> words(static_cast<std::size_t>((count + 255) / 256 * 256));
  for (std::size_t tile = 0; 256 * tile < words.size(); ++tile)
    for (std::size_t lane = 0; lane < 16; ++lane) {
      const auto rows = block(static_cast<std::uint32_t>(16 * tile + lane));
      for (std::size_t row = 0; row < 16; ++row) words[256 * tile + 16 * row + lane] = rows[row];
    }
  words.resize(static_cast<std::size_t>(count));
  return words;
}

}  // namespace cudp::verify
