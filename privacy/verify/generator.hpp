#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudp::verify {

/// ChaCha20's block function, RFC 8439, section 2.3. Returns the key stream as little-endian words.
std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 8>& key,
                                             std::uint32_t counter,
                                             const std::array<std::uint32_t, 3>& nonce);

/// Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key);

/// A run's stream of random words. Word i is in tile i / 256, row (i % 256) / 16, lane i % 16: it
/// is word `row` of block 16 tile + lane. ChaCha20's blocks have the nonce {stream, step low, step
/// high}. Philox' word w of block n is word w % 4 of counter {4 n + w / 4, n >> 30, step low,
/// stream} under the key's first two words.
class Words {
 public:
  /// Throws std::invalid_argument if the generator is neither "chacha20" nor "philox", or if a
  /// Philox step is not below 2^32.
  Words(std::string_view generator, const std::array<std::uint32_t, 8>& key, std::uint32_t stream,
        std::uint64_t step);

  /// The 16 words of a block. `round`: number of the round of further digits, 0 for the stream
  /// itself.
  std::array<std::uint32_t, 16> block(std::uint32_t number, std::uint32_t round = 0) const;
  /// Returns words 0 .. count - 1.
  std::vector<std::uint32_t> first(std::uint64_t count) const;

 private:
  bool philox_ = false;
  std::array<std::uint32_t, 8> key_{};
  std::uint32_t stream_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace cudp::verify
