#include "runtime/base/random_key.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include <sodium.h>
#include <sys/random.h>

#include "kernels/random/chacha20.hpp"
#include "runtime/base/error.hpp"

namespace cudp {

RandomKey make_key(EntropySource source) {
  RandomKey key{};
  auto* const bytes = reinterpret_cast<unsigned char*>(key.words);
  constexpr std::size_t kBytes = sizeof(RandomKey::words);
  std::size_t got = 0;
  while (got < kBytes) {
    const ssize_t n = source(bytes + got, kBytes - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int reason = errno;
      wipe(key);
      throw Error("random key: expected 32 bytes from getrandom, found " + std::to_string(got) +
                  (n < 0 ? std::string(": ") + std::strerror(reason) : ""));
    }
    got += static_cast<std::size_t>(n);
  }
  return key;
}

RandomKey make_key() { return make_key(getrandom); }

RandomKey key_from_seed(std::uint64_t seed) {
  const RandomKey from{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  std::uint32_t block[16];
  // The first word of the nonce is "seed" in ASCII, which is no value of Stream.
  chacha20_block<ScalarLanes>(from.words, 0, 0x64656573, 0, 0, block);
  RandomKey key{};
  std::memcpy(key.words, block, sizeof key.words);
  explicit_bzero(block, sizeof block);
  return key;
}

void wipe(RandomKey& key) { explicit_bzero(&key, sizeof key); }

namespace {

/// Allocates memory for a key, on a page of its own between guard pages. If the system allows it,
/// the page is locked, i.e. never swapped to disk.
RandomKey* locked_key() {
  if (::sodium_init() < 0) throw Error("random key: libsodium cannot start");
  void* const memory = ::sodium_malloc(sizeof(RandomKey));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) RandomKey{};
}

}  // namespace

void SecretKey::Free::operator()(RandomKey* key) const { ::sodium_free(key); }

SecretKey::SecretKey(const RandomKey& key) : key_(locked_key()) { *key_ = key; }

SecretKey::SecretKey(RandomKey&& key) : key_(locked_key()) {
  *key_ = key;
  wipe(key);
}

}  // namespace cudp
