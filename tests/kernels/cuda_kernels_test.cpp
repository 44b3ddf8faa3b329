#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
class TestGpu : public EmulatedGpu {  // with as much shared memory as an H200's
 public:
  TestGpu() : EmulatedGpu(1, {.multiprocessors = 3, .shared_bytes = std::size_t{227} * 1024}) {}
};
}

#include "tests/kernels/cuda_half_tests.hpp"
#include "tests/kernels/cuda_layer_tests.hpp"
#include "tests/kernels/cuda_patch_gradient_tests.hpp"
#include "tests/kernels/cuda_patch_product_tests.hpp"
#include "tests/kernels/cuda_product_tests.hpp"
#include "tests/kernels/cuda_scatter_tests.hpp"
#include "tests/kernels/cuda_sum_tests.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"
#include "tests/runtime/device/cuda_linear_tests.hpp"
