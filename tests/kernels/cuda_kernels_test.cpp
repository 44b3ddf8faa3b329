#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
class TestGpu : public EmulatedGpu {  // with as much shared memory as an H200's
 public:
  TestGpu() : EmulatedGpu(1, {.multiprocessors = 3, .shared_bytes = std::size_t{227} * 1024}) {}
};
}

#include "tests/kernels/cuda_finish_tests.hpp"
#include "tests/kernels/cuda_half_tests.hpp"
#include "tests/kernels/cuda_layer_tests.hpp"
#include "tests/kernels/cuda_patch_gradient_tests.hpp"
#include "tests/kernels/cuda_patch_product_tests.hpp"
#include "tests/kernels/cuda_product_tests.hpp"
#include "tests/kernels/cuda_scatter_tests.hpp"
#include "tests/kernels/cuda_step_tests.hpp"
#include "tests/kernels/cuda_sum_tests.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"
#include "tests/kernels/filled_patch_tests.hpp"
#include "tests/runtime/device/cuda_linear_tests.hpp"

namespace cudp {
namespace {

/// Noise that was made before the primary had ended, of values of the cursor that were out of date,
/// is not used.
TEST_F(CudaKernel, FinishUsesNoiseOfTheStepThatWasSummed) {
  constexpr int kN = 1043, kBlocks = 3;
  const std::vector<std::int32_t> summed(std::size_t{kBlocks} * kN, 12345);
  StepCursor at{.first = 0, .end = 9, .index = 6, .active = 1, .step = 5};
  at.scalars.noise_std = 0x1p20f;
  at.scale = sum_scale(1.0f, 0x1p-20);
  FinishStep a{.cursor = device(std::vector<StepCursor>{at}),
               .sum = device(std::vector<FixedPoint>(kN, 0)),
               .unfinished = {.sums = {batch(0, 8, kBlocks), device(summed), 1, kBlocks}},
               .noise = {Generator::chacha20, {{7, 8, 9}}, Stream::noise, 77},
               .n = kN,
               .undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0)),
               .released = device(std::vector<float>(kN, kLoud)),
               .update = {},
               .by_pairs = true};
  const FinishKernel kernel = finish_kernel_of(OptimizerKind::sgd, true);
  run(kernel, a);
  const std::vector<float> released = host(a.released, kN);
  std::vector<StepCursor> before(5, at);
  before[1].step = 4;
  before[2].scalars.noise_std = 0x1p19f;
  before[3].scale = sum_scale(1.0f, 0x1p-19);
  before[4].active = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    SCOPED_TRACE(i);
    a.cursor = device(std::vector<StepCursor>{before[i]});
    a.sum = device(std::vector<FixedPoint>(kN, 0));
    a.undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0));
    a.released = device(std::vector<float>(kN, kLoud));
    std::vector<std::int32_t> slabs(summed.size(), 999);
    a.unfinished.sums.slabs = slabs.data();
    const auto primary = [&] {
      EXPECT_EQ(host(a.released, kN), std::vector<float>(kN, kLoud));
      *a.cursor = at;
      slabs = summed;
    };
    const LaunchShape s = launch_shape(a);
    simt::launch(kernel, dim3(s.grid.x), dim3(s.block.x), s.shared_bytes,
                 {.is_dependent = true, .primary = primary}, a);
    EXPECT_EQ(host(a.released, kN), released);
  }
}

}  // namespace
}  // namespace cudp
