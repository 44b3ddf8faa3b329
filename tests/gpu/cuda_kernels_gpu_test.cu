#include "runtime/device/cuda/gpu.hpp"

namespace cudp {
using TestGpu = cuda::CudaGpu;
}

#include "tests/kernels/cuda_fused_tests.hpp"
#include "tests/kernels/cuda_layer_tests.hpp"
#include "tests/kernels/cuda_patch_gradient_tests.hpp"
#include "tests/kernels/cuda_patch_product_tests.hpp"
#include "tests/kernels/cuda_product_tests.hpp"
#include "tests/kernels/cuda_scatter_tests.hpp"
#include "tests/kernels/cuda_sum_tests.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"
#include "tests/runtime/device/cuda_linear_tests.hpp"
