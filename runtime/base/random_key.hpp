#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

#include "kernels/random/random.hpp"

namespace cudp {

/// Returns a random key of 256 bits from the operating system, getrandom(2). Throws Error if the
/// system gives fewer.
RandomKey make_key();

/// Returns the key of a reproducible run: the first half of a ChaCha20 block keyed by the seed, so
/// that different seeds give unrelated keys. Anyone who guesses the seed has the key, so such a run
/// is not for release.
RandomKey key_from_seed(std::uint64_t seed);

/// Overwrites the key with zeros, in a way that no optimizer removes.
void wipe(RandomKey& key);

/// A key in memory that is locked if the system allows it, so that it is not swapped out, and wiped
/// when the object dies. The caller must wipe copies of `key()`.
class SecretKey {
 public:
  explicit SecretKey(const RandomKey& key);
  /// Copies `key`, then wipes the argument.
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

/// A key with several owners: settings and engines share one locked copy.
class SharedKey {
 public:
  SharedKey() : SharedKey(RandomKey{}) {}
  SharedKey(const RandomKey& key) : key_(std::make_shared<const SecretKey>(key)) {}
  /// Copies `key`, then wipes the argument.
  SharedKey(RandomKey&& key) : SharedKey(static_cast<const RandomKey&>(key)) { wipe(key); }

  const RandomKey& key() const { return key_->key(); }

 private:
  std::shared_ptr<const SecretKey> key_;
};

/// Function with the signature of getrandom(2). Tests replace it.
using EntropySource = ssize_t (*)(void* buffer, std::size_t bytes, unsigned flags);
RandomKey make_key(EntropySource source);

}  // namespace cudp
