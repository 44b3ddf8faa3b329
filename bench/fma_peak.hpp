#pragma once
// The peak that arithmetic is measured against: multiply-adds on registers, at a SIMD level, on the
// core that runs the benchmark.
#include <chrono>
#include <cstdint>

#include "kernels/common/simd_level.hpp"

namespace cudp::bench {

/// Measures the maximum speed of fused multiply-adds on one thread: returns floating-point
/// operations per second at this SIMD level; 0 on processors other than x86-64. seconds:
/// approximate duration of the measurement.
inline double fma_peak(SimdLevel level, double seconds = 0.2) {
#if defined(__x86_64__)
  // Twelve independent chains: more than latency 4 times two instructions a cycle needs.
#define CUDP_CHAINS(op, r)                                                                  \
  op(r, 0) op(r, 1) op(r, 2) op(r, 3) op(r, 4) op(r, 5) op(r, 6) op(r, 7) op(r, 8) op(r, 9) \
      op(r, 10) op(r, 11)
#define CUDP_FMA(r, i) "vfmadd231ps %%" r "13,%%" r "13,%%" r #i "\n"
#define CUDP_ZERO(r, i) "vxorps %%xmm" #i ",%%xmm" #i ",%%xmm" #i "\n"
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kLoops = 1'000'000;
  double lanes = 0;
  double best = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    std::int64_t n = kLoops;
    const auto start = Clock::now();
    if (level == SimdLevel::avx512) {
      lanes = 16;
      asm volatile("vxorps %%xmm13,%%xmm13,%%xmm13\n" CUDP_CHAINS(CUDP_ZERO, "") "1:\n" CUDP_CHAINS(
                       CUDP_FMA, "zmm") "dec %0\njnz 1b\n"
                   : "+r"(n)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                     "xmm8", "xmm9", "xmm10", "xmm11", "xmm13", "cc");
    } else if (level == SimdLevel::avx2) {
      lanes = 8;
      asm volatile("vxorps %%xmm13,%%xmm13,%%xmm13\n" CUDP_CHAINS(CUDP_ZERO, "") "1:\n" CUDP_CHAINS(
                       CUDP_FMA, "ymm") "dec %0\njnz 1b\n"
                   : "+r"(n)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                     "xmm8", "xmm9", "xmm10", "xmm11", "xmm13", "cc");
    } else {
      lanes = 4;
      asm volatile(
          "xorps %%xmm13,%%xmm13\nxorps %%xmm12,%%xmm12\n"
          "1:\n"
          "mulps %%xmm13,%%xmm0\naddps %%xmm13,%%xmm6\nmulps %%xmm13,%%xmm1\n"
          "addps %%xmm13,%%xmm7\nmulps %%xmm13,%%xmm2\naddps %%xmm13,%%xmm8\n"
          "mulps %%xmm13,%%xmm3\naddps %%xmm13,%%xmm9\nmulps %%xmm13,%%xmm4\n"
          "addps %%xmm13,%%xmm10\nmulps %%xmm13,%%xmm5\naddps %%xmm13,%%xmm11\n"
          "mulps %%xmm13,%%xmm0\naddps %%xmm13,%%xmm6\nmulps %%xmm13,%%xmm1\n"
          "addps %%xmm13,%%xmm7\nmulps %%xmm13,%%xmm2\naddps %%xmm13,%%xmm8\n"
          "mulps %%xmm13,%%xmm3\naddps %%xmm13,%%xmm9\nmulps %%xmm13,%%xmm4\n"
          "addps %%xmm13,%%xmm10\nmulps %%xmm13,%%xmm5\naddps %%xmm13,%%xmm11\n"
          "dec %0\njnz 1b\n"
          : "+r"(n)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
            "xmm10", "xmm11", "xmm12", "xmm13", "cc");
    }
    const double t = std::chrono::duration<double>(Clock::now() - start).count();
    const double rate = static_cast<double>(kLoops) * 12 * lanes * 2 / t;
    best = rate > best ? rate : best;
  } while (Clock::now() < end);
  return best;
#undef CUDP_CHAINS
#undef CUDP_FMA
#undef CUDP_ZERO
#else
  (void)level;
  (void)seconds;
  return 0;
#endif
}

}  // namespace cudp::bench
