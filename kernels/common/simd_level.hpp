#pragma once
// The CPU's kernels, compiled once per SIMD level and chosen at run time.
#include <string_view>

namespace cudp {

/// Instruction sets for which the CPU's kernels are compiled; the best that the processor supports
/// is chosen at run time. `baseline` is SSE2 on x86-64 and plain vectors on other processors.
enum class SimdLevel { baseline, avx2, avx512 };

/// Returns the best SIMD level that both this build and this processor support. If the environment
/// variable CUDP_SIMD_LEVEL (baseline, avx2 or avx512) is a lower level, returns that one.
SimdLevel best_simd_level();

std::string_view simd_name(SimdLevel level);

/// Table of function pointers to the CPU's kernels, one entry per operation.
struct CpuKernels;

/// Returns the kernels that are compiled for a SIMD level. Throws std::invalid_argument if this
/// processor does not support it.
const CpuKernels& cpu_kernels(SimdLevel level);

}  // namespace cudp
