#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

#include "kernels/random/random.hpp"

namespace cudp {

/// Returns a random key of 256 bits from the operating system, by getrandom(2). Throws Error if the
/// system returns fewer bits.
RandomKey make_key();

/// Returns the key of a reproducible run, which follows from the seed: the first half of a ChaCha20
/// block whose key is the seed. Different seeds give unrelated keys. Anyone who guesses the seed
/// has the key, so the model of such a run must not be released.
RandomKey key_from_seed(std::uint64_t seed);

/// Overwrites the key with zeros, in a way that no optimizer removes.
void wipe(RandomKey& key);

/// A key in memory, which is locked (if the system allows it) so that it is not swapped to disk,
/// and overwritten with zeros when the object is destroyed. The caller must wipe copies that it
/// makes of `key()`.
class SecretKey {
 public:
  explicit SecretKey(const RandomKey& key);
  /// Makes an object with a copy of `key`, and overwrites the argument with zeros.
  explicit SecretKey(RandomKey&& key);
  ~SecretKey() = default;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  SecretKey(SecretKey&&) = default;
  SecretKey& operator=(SecretKey&&) = default;

  const RandomKey& key() const { return *key_; }

 private:
  /// Deleter of the key's memory.
  struct Free {
    void operator()(RandomKey* key) const;  ///< overwrites the key with zeros and frees it
  };
  std::unique_ptr<RandomKey, Free> key_;
};

/// A key in locked memory with several owners, such as settings and engines; all share one copy,
/// which is overwritten with zeros when the last owner is destroyed.
class SharedKey {
 public:
  SharedKey() : SharedKey(RandomKey{}) {}
  SharedKey(const RandomKey& key) : key_(std::make_shared<const SecretKey>(key)) {}
  /// Makes an object with a copy of `key`, and overwrites the argument with zeros.
  SharedKey(RandomKey&& key) : SharedKey(static_cast<const RandomKey&>(key)) { wipe(key); }

  const RandomKey& key() const { return key_->key(); }

 private:
  std::shared_ptr<const SecretKey> key_;
};

/// Function with the signature of getrandom(2), from which keys are made. Tests replace it.
using EntropySource = ssize_t (*)(void* buffer, std::size_t bytes, unsigned flags);
RandomKey make_key(EntropySource source);

}  // namespace cudp
