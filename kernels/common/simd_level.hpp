#pragma once
// The CPU's kernels, compiled once per SIMD level and chosen at run time.
#include <string_view>

namespace cudp {

/// x86-64 levels; `baseline` is SSE2, or plain vectors on other processors.
enum class SimdLevel { baseline, avx2, avx512 };

/// The best level that both this build and this processor have;
/// CUDP_SIMD_LEVEL=baseline|avx2|avx512 in the environment asks for a lower one.
SimdLevel best_simd_level();

std::string_view simd_name(SimdLevel level);

/// One entry an operation; each is documented where it is defined.
struct CpuKernels;

/// Throws std::invalid_argument if this processor lacks the level.
const CpuKernels& cpu_kernels(SimdLevel level);

}  // namespace cudp
