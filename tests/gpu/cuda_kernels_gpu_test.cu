#include "runtime/cuda/cuda_gpu.hpp"

namespace cudp {
using TestGpu = cuda::CudaGpu;
}

#include "tests/cuda_layer_tests.hpp"
#include "tests/cuda_linear_tests.hpp"
#include "tests/cuda_patch_gradient_tests.hpp"
#include "tests/cuda_patch_product_tests.hpp"
#include "tests/cuda_product_tests.hpp"
#include "tests/cuda_resident_tests.hpp"
#include "tests/cuda_scatter_tests.hpp"
#include "tests/cuda_sum_tests.hpp"
#include "tests/cuda_tensor_tests.hpp"
