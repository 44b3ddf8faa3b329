#pragma once
// The Gpu for which the sources of the engine are compiled: memory, launches, recorded work and
// BLAS. The sources are built twice (kernels/common/build.hpp): for CudaGpu, and in tests for an
// emulated device, where kernels run under the SIMT emulator.
#include "kernels/common/build.hpp"
#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
#include "runtime/device/cuda/cuda_gpu.hpp"
#else
#include "emulated_gpu.hpp"  // in an include directory of the tests
#endif

namespace cudp::cuda::inline CUDP_SIMT {

#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
using Gpu = CudaGpu;
#else
using Gpu = EmulatedGpu;
#endif

}  // namespace cudp::cuda::inline CUDP_SIMT
