#include "kernels/cpu_ops.hpp"
#include "kernels/vec.hpp"

namespace cudp::CUDP_SIMD {

extern const CpuKernels kKernels;
const CpuKernels kKernels = {
    .lanes = kLanes,
};

}  // namespace cudp::CUDP_SIMD
