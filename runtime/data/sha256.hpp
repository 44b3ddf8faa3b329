#pragma once
#include <array>
#include <cstdint>
#include <span>

#include <sodium.h>

namespace cudp {

/// SHA-256 of bytes that arrive in pieces. Uses the CPU's SHA instructions if it has them (about
/// five times as fast), otherwise libsodium.
class Sha256 {
 public:
  static constexpr std::size_t kBytes = 32;
  using Digest = std::array<std::uint8_t, kBytes>;

  /// Starts the computation of a digest; no bytes have been added. uses_processor: if false, uses
  /// libsodium even if the CPU has SHA instructions; for tests.
  explicit Sha256(bool uses_processor = true);

  void add(std::span<const std::uint8_t> bytes);
  /// Returns the digest of all bytes that were added. No other function may be called after it.
  Digest finish();

  /// Returns whether this CPU has instructions that compute SHA-256.
  static bool has_instructions();

 private:
  static constexpr std::size_t kBlock = 64;

  bool uses_processor_;
  crypto_hash_sha256_state sodium_{};        ///< state, if libsodium is used
  std::array<std::uint32_t, 8> words_;       ///< state, if SHA instructions are used
  std::array<std::uint8_t, kBlock> rest_{};  ///< bytes that do not fill a block yet
  std::uint64_t size_ = 0;                   ///< number of bytes so far
};

}  // namespace cudp
