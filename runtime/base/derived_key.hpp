#pragma once
#include <cstdint>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Key and random numbers that follow from a secret key: one ChaCha20 block, which no stream of
/// that key contains. Without the key they look like independent ones for each number.
struct DerivedKey {
  SharedKey key;
  std::uint64_t bits[2] = {};  ///< 128 uniform bits, independent of `key`
};

DerivedKey derived_key(const RandomKey& from, std::uint64_t number);

}  // namespace cudp
