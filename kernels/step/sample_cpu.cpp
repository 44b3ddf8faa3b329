#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/step/sample.hpp"

namespace cudp::CUDP_SIMD {

namespace {

// Appends base + lane for every lane of `words` that is at most `largest`, ascending; returns how
// many. Writes kLanes numbers at `out` where the level can compress in a register, so there must be
// room for them.
CUDP_INLINE int append(VecU words, VecU largest, std::uint32_t base, std::uint32_t* out) {
#if defined(__AVX512F__)
  const __mmask16 mask = _mm512_cmple_epu32_mask((__m512i)words, (__m512i)largest);
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i index = _mm512_add_epi32(lanes, (__m512i)broadcast_u(base));
  // Compressed in a register: the form that stores to memory is microcode on some processors.
  store_u(out, (VecU)_mm512_maskz_compress_epi32(mask, index));
  return __builtin_popcount(mask);
#else
  const auto drawn = words <= largest;
#if defined(__AVX2__)
  unsigned mask = static_cast<unsigned>(_mm256_movemask_ps((__m256)drawn));
#elif defined(__x86_64__)
  unsigned mask = static_cast<unsigned>(_mm_movemask_ps((__m128)drawn));
#else
  unsigned mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) mask |= drawn[lane] ? 1u << lane : 0u;
#endif
  int count = 0;
  for (; mask != 0; mask &= mask - 1)
    out[count++] = base + static_cast<std::uint32_t>(__builtin_ctz(mask));
  return count;
#endif
}

// One chunk's drawn examples; `out` has room for all 512.
CUDP_INLINE int sample_chunk(const RandomStream& stream, std::int64_t first, VecU largest,
                             std::uint32_t* out) {
  std::uint32_t words[kRandomChunk];
  words_chunk(stream, first, words);
  int count = 0;
  for (int i = 0; i < kRandomChunk; i += kLanes)
    count += append(load_u(words + i), largest, static_cast<std::uint32_t>(first) + i, out + count);
  return count;
}

// Every example with a threshold of its own.
std::int64_t sample_candidates(const SampleArgs& a) {
  std::int64_t count = 0;
  for (std::int64_t i = a.begin; i < a.end; i += kRandomChunk) {
    std::uint32_t words[kRandomChunk];
    words_chunk(a.stream, i, words);
    const std::int64_t end = i + kRandomChunk < a.end ? i + kRandomChunk : a.end;
    for (std::int64_t j = i; j < end; ++j)
      if (words[j - i] < candidate_threshold(a.rule, a.norms[j]))
        a.drawn[count++] = static_cast<std::uint32_t>(j);
  }
  return count;
}

}  // namespace

std::int64_t sample(const SampleArgs& a) {
  if (a.norms != nullptr) return sample_candidates(a);
  if (a.threshold == 0) return 0;
  // word < threshold as word <= threshold - 1: then 2^32 needs no case of its own
  const VecU largest = broadcast_u(static_cast<std::uint32_t>(a.threshold - 1));
  std::int64_t count = 0;
  std::int64_t i = a.begin;
  for (; i + kRandomChunk <= a.end; i += kRandomChunk)
    count += sample_chunk(a.stream, i, largest, a.drawn + count);
  if (i < a.end) {
    std::uint32_t tail[kRandomChunk];
    const int drawn = sample_chunk(a.stream, i, largest, tail);
    // distances from i, because the chunk may reach past the last 32-bit index
    const auto left = static_cast<std::uint32_t>(a.end - i);
    const auto first = static_cast<std::uint32_t>(i);
    for (int k = 0; k < drawn && tail[k] - first < left; ++k) a.drawn[count++] = tail[k];
  }
  return count;
}

}  // namespace cudp::CUDP_SIMD
