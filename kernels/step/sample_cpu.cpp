#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/step/sample.hpp"

namespace cudp::CUDP_SIMD {

namespace {

// Results of the comparisons < and == of two SIMD registers, one bit per lane.
struct Compared {
  unsigned below;
  unsigned equal;
};

#if !defined(__AVX512F__)
CUDP_INLINE unsigned bits_of(VecI lanes) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps((__m256)lanes));
#elif defined(__x86_64__)
  return static_cast<unsigned>(_mm_movemask_ps((__m128)lanes));
#else
  unsigned bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= lanes[lane] ? 1u << lane : 0u;
  return bits;
#endif
}
#endif

// Compares lane by lane. Numbers and limit are at most 2^16, so signed comparisons are correct.
CUDP_INLINE Compared compare(VecU numbers, VecU limit) {
#if defined(__AVX512F__)
  return {bits_of(_mm512_cmplt_epi32_mask((__m512i)numbers, (__m512i)limit)),
          bits_of(_mm512_cmpeq_epi32_mask((__m512i)numbers, (__m512i)limit))};
#else
  return {bits_of((VecI)numbers < (VecI)limit), bits_of((VecI)numbers == (VecI)limit)};
#endif
}

// Appends base + lane for every lane of `mask`, ascending. Returns their number. May write kLanes
// numbers at `out` (if the level can compress in a register), so `out` must have capacity for them.
CUDP_INLINE int append(unsigned mask, std::uint32_t base, std::uint32_t* out) {
#if defined(__AVX512F__)
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i index = _mm512_add_epi32(lanes, (__m512i)broadcast_u(base));
  // Compressed in a register: the form that stores to memory is microcode on some processors.
  store_u(out, (VecU)_mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), index));
  return __builtin_popcount(mask);
#else
  int count = 0;
  for (; mask != 0; mask &= mask - 1)
    out[count++] = base + static_cast<std::uint32_t>(__builtin_ctz(mask));
  return count;
#endif
}

// Returns the lanes of `equal` whose example, number base + lane, is drawn. The upper 16 bits of
// their random numbers equal the threshold's, so the lower 16 bits decide.
[[gnu::noinline]] unsigned drawn_by_lower_bits(const SampleArgs& a, std::int64_t base,
                                               unsigned equal) {
  std::uint32_t words[kRandomChunk];
  words_chunk(a.stream, kLowerBits + base / kSampleTile * 256, words);
  const int shift = base % kSampleTile < 256 ? 0 : 16;
  unsigned drawn = 0;
  for (; equal != 0; equal &= equal - 1) {
    const int lane = __builtin_ctz(equal);
    const std::uint32_t half = words[base % 256 + lane] >> shift & 0xffff;
    if (half < (a.threshold & 0xffff)) drawn |= 1u << lane;
  }
  return drawn;
}

constexpr std::int64_t kChunk =
    2 * kRandomChunk;  // examples per chunk of random words, two examples per word

// Writes the drawn examples of the chunk that starts at example `first`, and returns their number.
// `out` must have capacity for all examples of a chunk.
CUDP_INLINE int sample_chunk(const SampleArgs& a, std::int64_t first, std::uint32_t* out) {
  std::uint32_t words[kRandomChunk];
  words_chunk(a.stream, first / 2, words);
  const VecU limit = broadcast_u(static_cast<std::uint32_t>(a.threshold >> 16));
  const VecU low_half = broadcast_u(0xffff);
  int count = 0;
  const auto draw = [&](VecU halves, std::int64_t base) {
    Compared c = compare(halves, limit);
    if (c.equal != 0) [[unlikely]]
      c.below |= drawn_by_lower_bits(a, base, c.equal);
    count += append(c.below, static_cast<std::uint32_t>(base - a.first), out + count);
  };
  for (int tile = 0; tile < kRandomChunk; tile += 256) {
    const std::int64_t start = first + std::int64_t{2} * tile;
    for (int i = 0; i < 256; i += kLanes) draw(load_u(words + tile + i) & low_half, start + i);
    for (int i = 0; i < 256; i += kLanes) draw(load_u(words + tile + i) >> 16, start + 256 + i);
  }
  return count;
}

// Draws each example with a probability of its own (importance sampling).
std::int64_t sample_candidates(const SampleArgs& a) {
  std::int64_t count = 0;
  for (std::int64_t i = a.begin; i < a.end; i += kRandomChunk) {
    std::uint32_t words[kRandomChunk];
    words_chunk(a.stream, i, words);
    const std::int64_t end = i + kRandomChunk < a.end ? i + kRandomChunk : a.end;
    for (std::int64_t j = i; j < end; ++j)
      if (words[j - i] < candidate_threshold(a.rule, a.norms[j - a.first]))
        a.drawn[count++] = static_cast<std::uint32_t>(j - a.first);
  }
  return count;
}

}  // namespace

std::int64_t sample(const SampleArgs& a) {
  if (a.norms != nullptr) return sample_candidates(a);
  if (a.threshold == 0) return 0;
  std::int64_t count = 0;
  std::int64_t i = a.begin;
  for (; i + kChunk <= a.end; i += kChunk) count += sample_chunk(a, i, a.drawn + count);
  if (i < a.end) {
    std::uint32_t tail[kChunk];
    const int drawn = sample_chunk(a, i, tail);
    // Compares distances from i, because the chunk may extend past the largest 32-bit index.
    const auto left = static_cast<std::uint32_t>(a.end - i);
    const auto first = static_cast<std::uint32_t>(i - a.first);
    for (int k = 0; k < drawn && tail[k] - first < left; ++k) a.drawn[count++] = tail[k];
  }
  return count;
}

}  // namespace cudp::CUDP_SIMD
