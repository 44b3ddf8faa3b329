#pragma once
#include <cstdint>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// A random key and random bits that are derived from a secret key and a number, by one ChaCha20
/// block that no random stream of the secret key uses. Without the secret key, the results for
/// different numbers cannot be distinguished from independent random ones.
struct DerivedKey {
  SharedKey key;
  std::uint64_t bits[2] = {};  ///< 128 uniform random bits, independent of `key`
};

DerivedKey derived_key(const RandomKey& from, std::uint64_t number);

}  // namespace cudp
