#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

#include "kernels/random/random.hpp"

namespace cudp {

/// 256 bits from the operating system, getrandom(2). Throws Error if it cannot give them.
RandomKey make_key();

/// The key of a reproducible run. Different seeds give unrelated keys (the first half of a ChaCha20
/// block keyed by the seed), but whoever guesses the seed has the key: not for release.
RandomKey key_from_seed(std::uint64_t seed);

/// Overwrites the key with zeros, which no optimizer removes.
void wipe(RandomKey& key);

/// A key in memory that is locked, where the system allows it, so that it is not swapped out, and
/// wiped where it ends. Copies of `key()` are their holder's to wipe.
class SecretKey {
 public:
  explicit SecretKey(const RandomKey& key);
  /// Wipes `key`.
  explicit SecretKey(RandomKey&& key);
  ~SecretKey() = default;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  SecretKey(SecretKey&&) = default;
  SecretKey& operator=(SecretKey&&) = default;

  const RandomKey& key() const { return *key_; }

 private:
  struct Free {
    void operator()(RandomKey* key) const;  ///< wipes it
  };
  std::unique_ptr<RandomKey, Free> key_;
};

/// A key that several hold at once: settings and engines share one locked copy.
class SharedKey {
 public:
  SharedKey() : SharedKey(RandomKey{}) {}
  SharedKey(const RandomKey& key) : key_(std::make_shared<const SecretKey>(key)) {}
  /// Wipes `key`.
  SharedKey(RandomKey&& key) : SharedKey(static_cast<const RandomKey&>(key)) { wipe(key); }

  const RandomKey& key() const { return key_->key(); }

 private:
  std::shared_ptr<const SecretKey> key_;
};

/// getrandom(2), or what a test puts in its place.
using EntropySource = ssize_t (*)(void* buffer, std::size_t bytes, unsigned flags);
RandomKey make_key(EntropySource source);

}  // namespace cudp
