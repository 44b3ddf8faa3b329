#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudp::verify {

/// Returns a block of ChaCha20's key stream as little-endian words (block function of RFC 8439,
/// section 2.3). counter: the block's number. nonce: three words.
std::array<std::uint32_t, 16> chacha20_block(const std::array<std::uint32_t, 8>& key,
                                             std::uint32_t counter,
                                             const std::array<std::uint32_t, 3>& nonce);

/// Returns a block of the counter-based generator Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011,
/// "Parallel random numbers: as easy as 1, 2, 3".
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key);

/// A random stream of a run: 32-bit words from ChaCha20 or Philox, computed independently of the
/// trainer. Words are in tiles of 256: word i is in tile i / 256, row (i % 256) / 16, lane i % 16,
/// which is word `row` of generator block 16 tile + lane. ChaCha20's blocks have the nonce {stream,
/// step low, step high}. For Philox, word w of block n is word w % 4 of the output for counter {4 n
/// + w / 4, n >> 30, step low, stream} and the key's first two words.
class RandomWords {
 public:
  /// Selects the random stream with number `stream` of step `step`. generator: "chacha20" or
  /// "philox". key: the run's random key. Throws std::invalid_argument if the generator is another
  /// one, or if a Philox step is not below 2^32.
  RandomWords(std::string_view generator, const std::array<std::uint32_t, 8>& key,
              std::uint32_t stream, std::uint64_t step);

  /// Returns the 16 words of the stream's block with index `number`. round: 0 for the stream
  /// itself; k for its k-th extension, used for random numbers that need more digits.
  std::array<std::uint32_t, 16> block(std::uint32_t number, std::uint32_t round = 0) const;
  /// Returns the stream's words 0 .. count - 1.
  std::vector<std::uint32_t> first(std::uint64_t count) const;

 private:
  bool philox_ = false;
  std::array<std::uint32_t, 8> key_{};
  std::uint32_t stream_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace cudp::verify
