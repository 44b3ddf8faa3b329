#pragma once
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "kernels/random.hpp"

namespace cudp {

/// 256 bits from the operating system, getrandom(2). Throws Error if it cannot give them.
RandomKey make_key();

/// The key of a reproducible run. Different seeds give unrelated keys (the first half of a ChaCha20
/// block keyed by the seed), but whoever guesses the seed has the key: not for release.
RandomKey key_from_seed(std::uint64_t seed);

/// Overwrites the key with zeros, which no optimizer removes.
void wipe(RandomKey& key);

/// A key that is wiped where it ends. Copies of `key()` are their holder's to wipe.
class SecretKey {
 public:
  explicit SecretKey(const RandomKey& key) : key_(key) {}
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  SecretKey(SecretKey&& other) noexcept : key_(other.key_) { wipe(other.key_); }
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey() { wipe(key_); }

  const RandomKey& key() const { return key_; }

 private:
  RandomKey key_;
};

/// getrandom(2), or what a test puts in its place.
using EntropySource = ssize_t (*)(void* buffer, std::size_t bytes, unsigned flags);
RandomKey make_key(EntropySource source);

}  // namespace cudp
