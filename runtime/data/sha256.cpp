#include "runtime/data/sha256.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cudp {
namespace {

/// Initial state of SHA-256: fractional parts of the square roots of the first 8 primes.
constexpr std::array<std::uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

#if defined(__x86_64__)

/// Constants of the rounds of SHA-256: fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

/// Updates the state with whole blocks of 64 bytes. block: address of the first block. blocks:
/// number of blocks. The SHA instructions keep the state as two vectors of the words (a, b, e, f)
/// and (c, d, g, h), with the first word in the highest position.
__attribute__((target("sha,sse4.1"))) void compress(std::array<std::uint32_t, 8>& state,
                                                    const std::uint8_t* block, std::size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
  for (; blocks > 0; --blocks, block += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i m[4];  // the newest 16 words of the message schedule
    for (int i = 0; i < 4; ++i) {
      m[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), swap);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {  // four rounds each
      const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds.data()) + i);
      const __m128i input = _mm_add_epi32(m[i & 3], k);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0e));
      if (i < 12) {
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]),
                                          _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4));
        m[i & 3] = _mm_sha256msg2_epu32(sum, m[(i + 3) & 3]);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool has_sha_instructions() { return false; }
void compress(std::array<std::uint32_t, 8>&, const std::uint8_t*, std::size_t) {}

#endif

void store_big_endian(std::uint64_t value, int bytes, std::uint8_t* to) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

}  // namespace

bool Sha256::has_instructions() { return has_sha_instructions(); }

Sha256::Sha256(bool uses_processor)
    : uses_processor_(uses_processor && has_instructions()), words_(kStart) {
  ::crypto_hash_sha256_init(&sodium_);
}

void Sha256::add(std::span<const std::uint8_t> bytes) {
  if (!uses_processor_) {
    ::crypto_hash_sha256_update(&sodium_, bytes.data(), bytes.size());
    return;
  }
  if (bytes.empty()) return;
  const std::size_t filled = size_ % kBlock;
  size_ += bytes.size();
  if (filled > 0) {
    const std::size_t n = std::min(bytes.size(), kBlock - filled);
    std::memcpy(rest_.data() + filled, bytes.data(), n);
    bytes = bytes.subspan(n);
    if (filled + n < kBlock) return;
    compress(words_, rest_.data(), 1);
  }
  compress(words_, bytes.data(), bytes.size() / kBlock);
  const std::span left = bytes.subspan(bytes.size() / kBlock * kBlock);
  if (!left.empty()) std::memcpy(rest_.data(), left.data(), left.size());
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  if (!uses_processor_) {
    ::crypto_hash_sha256_final(&sodium_, digest.data());
    return digest;
  }
  // Appends the padding of SHA-256, up to the end of a block: a bit 1, zeros, and the number of
  // bits of the message.
  const std::uint64_t bits = 8 * size_;
  std::array<std::uint8_t, 2 * kBlock> end{0x80};
  const std::size_t filled = size_ % kBlock;
  const std::size_t padding = (filled < kBlock - 8 ? kBlock : 2 * kBlock) - filled;
  store_big_endian(bits, 8, end.data() + padding - 8);
  add(std::span(end).first(padding));
  for (std::size_t i = 0; i < words_.size(); ++i)
    store_big_endian(words_[i], 4, digest.data() + 4 * i);
  return digest;
}

}  // namespace cudp
