#include "runtime/random_key.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/random.h>

#include "kernels/chacha20.hpp"
#include "runtime/error.hpp"

namespace cudp {

RandomKey make_key(EntropySource source) {
  RandomKey key{};
  auto* const bytes = reinterpret_cast<unsigned char*>(key.words);
  std::size_t got = 0;
  while (got < sizeof key.words) {
    const ssize_t n = source(bytes + got, sizeof key.words - got, 0);
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
  // The nonce's first word is no Stream: "seed" in ASCII.
  chacha20_block<ScalarLanes>(from, 0, 0x64656573, 0, 0, block);
  RandomKey key{};
  std::memcpy(key.words, block, sizeof key.words);
  explicit_bzero(block, sizeof block);
  return key;
}

void wipe(RandomKey& key) { explicit_bzero(&key, sizeof key); }

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this != &other) {
    key_ = other.key_;
    wipe(other.key_);
  }
  return *this;
}

}  // namespace cudp
