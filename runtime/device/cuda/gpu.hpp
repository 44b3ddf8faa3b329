#pragma once
// The Gpu that the engine's sources are compiled for: memory, launches, recorded work and BLAS.
// They are built twice (kernels/common/build.hpp): for CudaGpu, and in tests for an emulated one,
// in which kernels run under the SIMT emulator.
#include "kernels/common/build.hpp"
#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
#include "runtime/device/cuda/cuda_gpu.hpp"
#else
#include "emulated_gpu.hpp"  // of an include directory that only tests have
#endif

namespace cudp::cuda::inline CUDP_SIMT {

#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
using Gpu = CudaGpu;
#else
using Gpu = EmulatedGpu;
#endif

}  // namespace cudp::cuda::inline CUDP_SIMT
