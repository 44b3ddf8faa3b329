#include "kernels/cpu_kernels.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/common/simd_level.hpp"

namespace cudp {

namespace baseline {
extern const CpuKernels kKernels;
}
#ifdef CUDP_X86
namespace avx2 {
extern const CpuKernels kKernels;
}
namespace avx512 {
extern const CpuKernels kKernels;
}
#endif

std::string_view simd_name(SimdLevel level) {
  switch (level) {
    case SimdLevel::avx512:
      return "avx512";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::baseline:
      break;
  }
  return "baseline";
}

namespace {
bool processor_has(SimdLevel level) {
#ifdef CUDP_X86
  if (level == SimdLevel::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (level == SimdLevel::avx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
#endif
  return level == SimdLevel::baseline;
}
}  // namespace

SimdLevel best_simd_level() {
  SimdLevel best = SimdLevel::baseline;
  for (const SimdLevel level : {SimdLevel::avx2, SimdLevel::avx512})
    if (processor_has(level)) best = level;
  if (const char* requested = std::getenv("CUDP_SIMD_LEVEL"))
    for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512})
      if (simd_name(level) == requested && level < best) best = level;
  return best;
}

const CpuKernels& cpu_kernels(SimdLevel level) {
  if (!processor_has(level))
    throw std::invalid_argument("this processor lacks SIMD level " + std::string(simd_name(level)));
#ifdef CUDP_X86
  if (level == SimdLevel::avx512) return avx512::kKernels;
  if (level == SimdLevel::avx2) return avx2::kKernels;
#endif
  return baseline::kKernels;
}

}  // namespace cudp
