#pragma once
// The Gpu that the engine's sources are compiled for: memory, launches, recorded work and BLAS.
// nvcc compiles them for CudaGpu. Tests compile the same sources for an emulated one, in which
// kernels run under the SIMT emulator. Each build has a namespace of its own, as kernels have
// (kernels/common/simt.cuh), so that one program can hold both engines.
#include "kernels/common/simt.cuh"
#ifdef __CUDACC__
#include "runtime/device/cuda/cuda_gpu.hpp"
#else
#include "emulated_gpu.hpp"  // of an include directory that only tests have
#endif

namespace cudp::cuda::inline CUDP_SIMT {

#ifdef __CUDACC__
using Gpu = CudaGpu;
#else
using Gpu = EmulatedGpu;
#endif

}  // namespace cudp::cuda::inline CUDP_SIMT
