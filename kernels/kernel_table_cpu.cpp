#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"

namespace cudp::CUDP_SIMD {

extern const CpuKernels kKernels;
const CpuKernels kKernels = {
    .lanes = kLanes,
#define CUDP_CPU_KERNEL(result, name, ...) .name = name,
#include "kernels/common/cpu_kernels.def"
#undef CUDP_CPU_KERNEL
};

}  // namespace cudp::CUDP_SIMD
