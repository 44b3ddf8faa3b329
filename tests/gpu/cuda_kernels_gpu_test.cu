#include "runtime/device/cuda/gpu.hpp"

namespace cudp {
using TestGpu = cuda::CudaGpu;
}

#include "tests/kernels/cuda_finish_tests.hpp"
#include "tests/kernels/cuda_fused_tests.hpp"
#include "tests/kernels/cuda_fused_transformed_tests.hpp"
#include "tests/kernels/cuda_half_tests.hpp"
#include "tests/kernels/cuda_layer_tests.hpp"
#include "tests/kernels/cuda_patch_gradient_tests.hpp"
#include "tests/kernels/cuda_patch_product_tests.hpp"
#include "tests/kernels/cuda_product_tests.hpp"
#include "tests/kernels/cuda_recurrent_tests.hpp"
#include "tests/kernels/cuda_scatter_tests.hpp"
#include "tests/kernels/cuda_sequence_tests.hpp"
#include "tests/kernels/cuda_step_tests.hpp"
#include "tests/kernels/cuda_sum_tests.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"
#include "tests/kernels/cuda_text_product_tests.hpp"
#include "tests/kernels/fused_kernel_tests.hpp"
#include "tests/kernels/recurrent_kernel_tests.hpp"
#include "tests/runtime/device/cuda_linear_tests.hpp"

namespace cudp {
namespace {

/// CUB adds up norms as the kernel that stands in for it.
TEST_F(CudaKernel, CubTotalsNormsAsItsTwin) {
  if (!cuda::has_cub()) GTEST_SKIP() << "this program has no CUB";
  cuda::CudaGpu gpu;
  for (const std::size_t n : {1u, 17u, 4097u, 1'000'003u}) {
    const std::vector<float> norms = norms_to_add(n);
    NormTotal a{.norms = device(norms),
                .n = static_cast<std::int64_t>(n),
                .max_norm = 0.7,
                .grid = 0x1p-30,
                .total = device(std::vector<unsigned long long>{0})};
    run(norm_total_kernel, a);
    const unsigned long long want = host(a.total, 1)[0];
    gpu.total_norms(a);
    unsigned long long got = 0;
    gpu.download(&got, a.total, sizeof got);
    EXPECT_EQ(got, want) << n;
  }
}

}  // namespace
}  // namespace cudp
