#include "runtime/base/random_key.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "runtime/base/error.hpp"
#include "tests/support/reference/random.hpp"

namespace cudp {
namespace {

bool equal(const RandomKey& a, const RandomKey& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(RandomKey, IsNewEveryTime) {
  const RandomKey a = make_key();
  EXPECT_FALSE(equal(a, make_key()));
  EXPECT_FALSE(equal(a, RandomKey{}));
}

// Gives at most 5 bytes at a time, and is interrupted before each.
ssize_t slow_source(void* buffer, std::size_t bytes, unsigned) {
  static unsigned char next = 0;
  static bool interrupted = false;
  interrupted = !interrupted;
  if (interrupted) {
    errno = EINTR;
    return -1;
  }
  const std::size_t n = std::min<std::size_t>(bytes, 5);
  for (std::size_t i = 0; i < n; ++i) static_cast<unsigned char*>(buffer)[i] = next++;
  return static_cast<ssize_t>(n);
}

TEST(RandomKey, IsWholeAfterInterruptionsAndShortReads) {
  const RandomKey key = make_key(slow_source);
  unsigned char bytes[32];
  std::memcpy(bytes, key.words, sizeof bytes);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(bytes[i], i);
}

TEST(RandomKey, IsRefusedWithoutEntropy) {
  const auto unavailable = [](void*, std::size_t, unsigned) -> ssize_t {
    errno = ENOSYS;
    return -1;
  };
  const auto dry = [](void*, std::size_t, unsigned) -> ssize_t { return 0; };
  try {
    make_key(unavailable);
    FAIL() << "a key out of nothing";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::failure);
    EXPECT_NE(std::string(e.what()).find(std::strerror(ENOSYS)), std::string::npos) << e.what();
  }
  EXPECT_THROW(make_key(dry), Error);
}

TEST(RandomKey, OfASeedIsHalfAChaCha20Block) {
  const std::uint64_t seed = 0x0123456789abcdef;
  const auto block = reference::chacha20_block({{0x89abcdef, 0x01234567}}, 0, {0x64656573, 0, 0});
  const RandomKey key = key_from_seed(seed);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(key.words[i], block[i]);
}

TEST(RandomKey, OfDifferentSeedsShareNoWord) {
  std::set<std::uint32_t> words;
  int drawn = 0;
  const auto add = [&](std::uint64_t seed) {
    for (const std::uint32_t w : key_from_seed(seed).words) {
      words.insert(w);
      ++drawn;
    }
  };
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    add(seed);
    add((seed + 1) << 32);
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(drawn));
}

TEST(SecretKey, TakesTheKeyAndLeavesNothingBehind) {
  RandomKey source = key_from_seed(1);
  SecretKey secret(static_cast<RandomKey&&>(source));
  EXPECT_TRUE(equal(source, RandomKey{}));
  EXPECT_TRUE(equal(secret.key(), key_from_seed(1)));
  const SecretKey moved(std::move(secret));
  EXPECT_TRUE(equal(moved.key(), key_from_seed(1)));
}

/// In kB, as the system says.
int locked_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmLck:")) return std::stoi(line.substr(6));
  return 0;
}

TEST(SecretKey, IsLockedInMemoryWhileItLives) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur < 65536) GTEST_SKIP() << "the system lets nothing be locked";
#if defined(CUDP_SANITIZED)
  GTEST_SKIP() << "sanitizers leave mlock out";
#endif
  const int before = locked_memory();
  {
    const SecretKey secret(key_from_seed(1));
    EXPECT_GT(locked_memory(), before);
  }
  EXPECT_EQ(locked_memory(), before);
}

}  // namespace
}  // namespace cudp
