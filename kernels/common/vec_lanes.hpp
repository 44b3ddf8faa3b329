#pragma once
// A SIMD register of floats as a type for templates that also work on a single float (ScalarLanes
// in lanes.hpp).
#include "kernels/common/lanes.hpp"
#include "kernels/common/vec.hpp"

namespace cudp::CUDP_SIMD {

/// The `lanes` type for code that computes a SIMD register of elements at a time. Functions that
/// take a lanes type L are written once for it and for ScalarLanes, a single element.
struct VecLanes {
  using F = Vec;
  using I = VecI;
  using U = VecU;

  static CUDP_HD F fill(float x) { return broadcast(x); }
  static CUDP_HD U fill_u(std::uint32_t x) { return broadcast_u(x); }
  static CUDP_HD F to_float(I x) { return CUDP_SIMD::to_float(x); }
  static CUDP_HD U bits(F x) { return (U)x; }
  static CUDP_HD F from_bits(U u) { return (F)u; }

  /// Returns a b + c, rounded once if the SIMD level has fused multiply-adds, otherwise twice.
  static CUDP_HD F fma(F a, F b, F c) {
#if defined(__AVX512F__)
    return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
  }
  static CUDP_HD F sqrt(F x) { return CUDP_SIMD::sqrt(x); }

  template <int n>
  static CUDP_HD U rotate_left(U x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    if constexpr (n % 8 == 0) {  // whole bytes: one shuffle in place of two shifts and an or
      static_assert(n == 16 || n == 8, "other shuffles are not tabulated");
      constexpr std::int64_t kLow = n == 16 ? 0x0504070601000302 : 0x0605040702010003;
      constexpr std::int64_t kHigh = kLow + 0x0808080808080808;
      return (U)_mm256_shuffle_epi8((__m256i)x, _mm256_set_epi64x(kHigh, kLow, kHigh, kLow));
    }
#endif
    return x << n | x >> (32 - n);  // one instruction in AVX-512
  }

  /// Computes the 64-bit product of a and m in every lane. Returns the low 32 bits of the products
  /// and writes the high 32 bits to `high`.
  static CUDP_HD U multiply(U a, std::uint32_t m, U& high) {
#if defined(__AVX512F__)
    // Uses the maskz forms, because GCC 12 warns of an uninitialised variable inside the plain
    // forms.
    const __m512i factor = (__m512i)fill_u(m);
    const __m512i even = _mm512_maskz_mul_epu32(0xff, (__m512i)a, factor);
    const __m512i odd = _mm512_maskz_mul_epu32(0xff, (__m512i)a >> 32, factor);
    high = (U)_mm512_mask_blend_epi32(0xaaaa, even >> 32, odd);
    return (U)_mm512_mask_blend_epi32(0xaaaa, even, odd << 32);
#elif defined(__AVX2__)
    const __m256i factor = (__m256i)fill_u(m);
    const __m256i even = _mm256_mul_epu32((__m256i)a, factor);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
    high = (U)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return (U)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
#elif defined(__x86_64__)
    const __m128i factor = (__m128i)fill_u(m);
    const __m128i even = _mm_mul_epu32((__m128i)a, factor);
    const __m128i odd = _mm_mul_epu32(_mm_srli_epi64((__m128i)a, 32), factor);
    const __m128i upper = _mm_set_epi32(-1, 0, -1, 0);
    high = (U)_mm_or_si128(_mm_srli_epi64(even, 32), _mm_and_si128(odd, upper));
    return (U)_mm_or_si128(_mm_andnot_si128(upper, even), _mm_slli_epi64(odd, 32));
#else
    U low;
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t product = static_cast<std::uint64_t>(a[i]) * m;
      low[i] = static_cast<std::uint32_t>(product);
      high[i] = static_cast<std::uint32_t>(product >> 32);
    }
    return low;
#endif
  }
};

}  // namespace cudp::CUDP_SIMD
