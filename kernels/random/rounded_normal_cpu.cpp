#include <cstddef>

#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/log_sincospi.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/random/rounded_normal_math.hpp"

namespace cudp::CUDP_SIMD {

namespace {

constexpr std::int64_t kTileLanes = 16;  // generator blocks in a tile
constexpr int kDoubles = kLanes / 2;

using VecD = double __attribute__((vector_size(kDoubles * 8)));
using VecL = std::int64_t __attribute__((vector_size(kDoubles * 8)));
using VecHalf = std::uint32_t __attribute__((vector_size(kDoubles * 4)));
using VecHalfI = std::int32_t __attribute__((vector_size(kDoubles * 4)));

CUDP_INLINE VecHalf load_half(const std::uint32_t* p) {
  VecHalf v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

CUDP_INLINE VecD unsigned_to_double(VecHalf v) {
#if defined(__AVX512F__)
  return (VecD)_mm512_maskz_cvtepu32_pd(0xff, (__m256i)v);
#else
  // Puts v into the low bits of the mantissa of 2^52, which gives 2^52 + v, and subtracts 2^52.
  return (VecD)(__builtin_convertvector(v, VecL) | 0x4330000000000000) - 0x1p52;
#endif
}

CUDP_INLINE VecD sqrt_double(VecD x) {
#if defined(__AVX512F__)
  return (VecD)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#elif defined(__AVX2__)
  return (VecD)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
  return (VecD)_mm_sqrt_pd((__m128d)x);
#else
  for (int i = 0; i < kDoubles; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

// Returns a bit for each lane that is zero. Every lane is all ones or zero.
CUDP_INLINE unsigned zeros(VecL all_ones_or_zero) {
#if defined(__AVX512F__)
  return 0xffu & ~bits_of(_mm512_movepi64_mask((__m512i)all_ones_or_zero));
#elif defined(__AVX2__)
  return 0xfu & ~static_cast<unsigned>(_mm256_movemask_pd((__m256d)all_ones_or_zero));
#else
  unsigned bits = 0;
  for (int i = 0; i < kDoubles; ++i) bits |= all_ones_or_zero[i] ? 0u : 1u << i;
  return bits;
#endif
}

// Stores the integers nearest to x. Returns all ones in each lane whose x is farther from a
// rounding boundary than its error.
CUDP_INLINE VecL store_nearest(VecD x, VecD error, std::int64_t* to) {
  const VecD shifted = x + kToInteger;
  const VecL k = (VecL)shifted - __builtin_bit_cast(std::int64_t, kToInteger);
  __builtin_memcpy(to, &k, sizeof k);
  return rounded_normal_decided(x, shifted - kToInteger, error);
}

// Computes kDoubles pairs of rounded normals from their words; arguments and result as in
// try_rounded_pairs, with spread = rounded_normal_spread() in place of error_factor.
CUDP_INLINE unsigned some_pairs(const std::uint32_t* words, double s, double spread,
                                std::int64_t* even, std::int64_t* odd) {
  const VecD u1 = rounded_normal_u1(unsigned_to_double(load_half(words)),
                                    unsigned_to_double(load_half(words + kTileLanes)));
  const VecHalfI turn_high = (VecHalfI)load_half(words + 2 * kTileLanes);
  const VecD turn = rounded_normal_turn(__builtin_convertvector(turn_high, VecD),
                                        unsigned_to_double(load_half(words + 3 * kTileLanes)));
  const VecD l = log_of_fraction(u1) * -2.0;
  const VecD r = sqrt_double(l);
  const SineCosine<VecD> circle = sine_cosine_of_turn(turn);
  const VecD error = rounded_normal_error(u1, r) * spread;
  const VecD radius = r * s;
  VecL decided = rounded_normal_bounded(l, error);
  decided &= store_nearest(radius * circle.cosine, error, even);
  decided &= store_nearest(radius * circle.sine, error, odd);
  return zeros(decided);
}

// Implements try_rounded_pairs, with spread = rounded_normal_spread() in place of error_factor.
CUDP_INLINE unsigned row_of_pairs(const std::uint32_t* words, double s, double spread,
                                  std::int64_t* even, std::int64_t* odd) {
  unsigned undecided = 0;
  for (std::int64_t lane = 0; lane < kTileLanes; lane += kDoubles)
    undecided |= some_pairs(words + lane, s, spread, even + lane, odd + lane) << lane;
  return undecided;
}

}  // namespace

unsigned try_rounded_pairs(const std::uint32_t* words, double s, std::int64_t* even,
                           std::int64_t* odd, double error_factor) {
  return row_of_pairs(words, s, rounded_normal_spread(s, error_factor), even, odd);
}

void rounded_normals_chunk(const RandomStream& stream, double s, std::int64_t first,
                           std::int64_t* out) {
  const double spread = rounded_normal_spread(s);
  std::uint32_t words[2 * kRandomChunk];
  words_chunk(stream, 2 * first, words);
  words_chunk(stream, 2 * first + kRandomChunk, words + kRandomChunk);
  for (std::int64_t row = 0; row < kRandomChunk / 2; row += kTileLanes) {
    const std::uint32_t* const from = words + 4 * row;
    std::int64_t* const even = out + 2 * row;
    std::int64_t* const odd = even + kTileLanes;
    unsigned undecided = row_of_pairs(from, s, spread, even, odd);
    for (; __builtin_expect(undecided != 0, 0); undecided &= undecided - 1) {
      const int lane = __builtin_ctz(undecided);
      const std::uint32_t pair_words[4] = {from[lane], from[kTileLanes + lane],
                                           from[2 * kTileLanes + lane],
                                           from[3 * kTileLanes + lane]};
      const RoundedPair k = exact_rounded_pair(stream, first / 2 + row + lane, pair_words, s);
      even[lane] = k.even;
      odd[lane] = k.odd;
    }
  }
}

void rounded_normals(const RoundedNormals& a) {
  std::int64_t i = a.begin;
  for (; i + kRandomChunk <= a.end; i += kRandomChunk)
    rounded_normals_chunk(a.stream, a.s, i, a.out + (i - a.begin));
  if (i < a.end) {
    std::int64_t tail[kRandomChunk];
    rounded_normals_chunk(a.stream, a.s, i, tail);
    __builtin_memcpy(a.out + (i - a.begin), tail,
                     sizeof(std::int64_t) * static_cast<std::size_t>(a.end - i));
  }
}

}  // namespace cudp::CUDP_SIMD
