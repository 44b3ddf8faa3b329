#include "runtime/base/derived_key.hpp"

#include <cstring>

#include "kernels/random/chacha20.hpp"

namespace cudp {

DerivedKey derived_key(const RandomKey& from, std::uint64_t number) {
  std::uint32_t block[16];
  // The first word of the nonce is "tune" in ASCII, which is no value of Stream.
  chacha20_block<ScalarLanes>(from.words, 0, 0x656e7574, static_cast<std::uint32_t>(number),
                              static_cast<std::uint32_t>(number >> 32), block);
  DerivedKey derived;
  RandomKey key{};
  static_assert(sizeof key.words + sizeof derived.bits <= sizeof block);
  std::memcpy(key.words, block, sizeof key.words);
  std::memcpy(derived.bits, block + 8, sizeof derived.bits);
  explicit_bzero(block, sizeof block);
  // Moving wipes `key`. NOLINTNEXTLINE(performance-move-const-arg)
  derived.key = SharedKey(std::move(key));
  return derived;
}

}  // namespace cudp
