#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/product_kernels.hpp"

namespace cudp::cuda {

template const ProductKernels& product_kernels<CudaGpu>();

}  // namespace cudp::cuda
