#pragma once
#include <cstdint>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// A random key and random bits derived from a secret key and a number, by one ChaCha20 block that
/// no random stream of that key contains. To anyone without the key, the results for different
/// numbers look independent.
struct DerivedKey {
  SharedKey key;
  std::uint64_t bits[2] = {};  ///< 128 uniform bits, independent of `key`
};

DerivedKey derived_key(const RandomKey& from, std::uint64_t number);

}  // namespace cudp
