#pragma once
// The float vector of the SIMD level that a file is compiled for. Files named *_cpu.cpp are
// compiled once per level, with CUDP_SIMD set to that level's namespace. They must not include
// headers whose inline functions have the same names at all levels, e.g. std containers. The linker
// keeps one copy of such a function, and could keep the AVX-512 copy for a machine without AVX-512.
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef CUDP_SIMD
#define CUDP_SIMD portable
#endif

#define CUDP_INLINE static inline __attribute__((always_inline))

namespace cudp::CUDP_SIMD {

/// Sizes of the instruction set (SIMD level) that this file is compiled for. kLanes: number of
/// floats in a SIMD register. kRegisters: number of SIMD registers.
#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
inline constexpr int kRegisters = 32;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
inline constexpr int kRegisters = 16;
#else
inline constexpr int kLanes = 4;
inline constexpr int kRegisters = 16;
#endif

// GNU vector types: + - * / and comparisons work lane by lane; a comparison gives a VecI of 0 or
// -1, and `mask ? a : b` selects. Products and sums contract to FMA if the level has it.
using Vec = float __attribute__((vector_size(kLanes * 4)));
using VecI = std::int32_t __attribute__((vector_size(kLanes * 4)));
using VecU = std::uint32_t __attribute__((vector_size(kLanes * 4)));

/// Loads kLanes floats from an address of any alignment.
CUDP_INLINE Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
/// Stores kLanes floats to an address of any alignment.
CUDP_INLINE void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
CUDP_INLINE VecU load_u(const std::uint32_t* p) {
  VecU v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
CUDP_INLINE void store_u(std::uint32_t* p, VecU v) { __builtin_memcpy(p, &v, sizeof v); }

CUDP_INLINE Vec broadcast(float x) { return x - Vec{}; }
CUDP_INLINE VecU broadcast_u(std::uint32_t x) { return x - VecU{}; }

#if defined(__AVX512F__)
/// Converts a mask register to an integer; the bits above the mask are zero. Written in assembly,
/// because GCC 12 sometimes stores a mask as 16 bits and reads back 32, with garbage above. (Seen
/// with -fsanitize=thread: examples were counted that had not been drawn.)
CUDP_INLINE unsigned bits_of(__mmask8 mask) {
  unsigned bits = 0;
  asm("kmovb %1, %0" : "=r"(bits) : "k"(mask));
  return bits;
}
CUDP_INLINE unsigned bits_of(__mmask16 mask) {
  unsigned bits = 0;
  asm("kmovw %1, %0" : "=r"(bits) : "k"(mask));
  return bits;
}
#endif

/// Maximum, lane by lane. NaN in either argument gives b, as the processor's own instruction does.
/// (GCC 12 compiles `a > b ? a : b` to a comparison and a blend.)
CUDP_INLINE Vec max(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
  return (Vec)_mm_max_ps((__m128)a, (__m128)b);
#else
  return a > b ? a : b;
#endif
}
CUDP_INLINE Vec min(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__x86_64__)
  return (Vec)_mm_min_ps((__m128)a, (__m128)b);
#else
  return a < b ? a : b;
#endif
}

CUDP_INLINE Vec sqrt(Vec a) {
#if defined(__AVX512F__)
  // Uses the maskz form, because GCC 12 warns of an uninitialised variable inside the plain form.
  return (Vec)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
#elif defined(__AVX2__)
  return (Vec)_mm256_sqrt_ps((__m256)a);
#elif defined(__x86_64__)
  return (Vec)_mm_sqrt_ps((__m128)a);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}

CUDP_INLINE Vec to_float(VecI v) { return __builtin_convertvector(v, Vec); }
CUDP_INLINE VecI float_to_bits(Vec v) { return (VecI)v; }

/// Returns the sum of the numbers of a SIMD register, added pairwise.
CUDP_INLINE float reduce_add(Vec v) {
  float lane[kLanes];
  store(lane, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}

}  // namespace cudp::CUDP_SIMD
