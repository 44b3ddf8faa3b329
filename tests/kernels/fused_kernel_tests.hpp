#pragma once
// The fused kernel on tensor cores (kernels/fused/fused_kernel.cuh) against the oracle, example by
// example, and against itself: results depend on no E, grid, place or neighbour, by a bit.
#include "tests/kernels/fused_kernel_fixture.hpp"

namespace cudp {
namespace {

/// Of each kind one instance: the others give the same bits.
TEST_F(TensorStep, GivesTheGradientOfOneExample) {
  using fused::Input, fused::Split;
  for (const SameBits& all :
       {cnn_instances<Split::forward, Input::bytes>(),
        cnn_instances<Split::forward, Input::numbers>(), cnn_instances<Split::all, Input::bytes>(),
        cnn_instances<Split::all, Input::numbers>(), scatter_instances<Split::forward>(),
        scatter_instances<Split::all>()}) {
    use(all.back());
    expect_gradients(all.back());
  }
}

TEST_F(TensorStep, AnExampleGivesTheSameBitsInEveryPlace) {
  using fused::Input, fused::Split;
  expect_same_bits(cnn_instances<Split::forward, Input::bytes>());
  expect_same_bits(cnn_instances<Split::forward, Input::numbers>());
  expect_same_bits(cnn_instances<Split::all, Input::numbers>());
  expect_same_bits(scatter_instances<Split::forward>());
}

/// One block takes an example after another: of networks whose first gradient is one warp's, or all
/// warps'. Launches are few, so that mutants of these kernels are interpreted in seconds
/// (scripts/mutants.py).
TEST_F(TensorStep, ABlockTakesTwoExamplesInTurn) {
  using fused::Input, fused::Split;
  for (const TensorInstance& t :
       {tensor_instance<fused::Cnn, Split::forward, Input::bytes, 1>("cnn", kTensorCnn),
        tensor_instance<fused::ScatterCnn, Split::forward, Input::numbers, 1>("scatter_cnn",
                                                                              kTensorScatter)}) {
    use(t);
    expect_gradients(t, 1);
    const Dataset data = features(t, 2);
    const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
    const Left both = sum_of(t, data, {0, 1}, 1, clip);
    std::vector<std::int64_t> sum(d_, 0);
    for (const std::uint32_t e : {0u, 1u}) {
      const Left one = sum_of(t, data, {e}, 1, clip);
      for (std::size_t j = 0; j < d_; ++j) sum[j] += one.sum[j];
      for (std::size_t g = 0; g < layers_; ++g)
        EXPECT_EQ(both.squared_norms[e * layers_ + g], one.squared_norms[g]) << t.name;
    }
    EXPECT_EQ(both.sum, sum) << t.name;
  }
}

/// The other tasks of kernels for bytes.
TEST_F(TensorStep, NormsLogitsAndTransformsOfBytes) {
  using fused::Input, fused::Split;
  const SameBits all = cnn_instances<Split::forward, Input::bytes>();
  expect_norms_and_logits(all);
  expect_accepted(all);
  expect_transformed(cnn_instances<Split::forward, Input::bytes, true>());
}

TEST_F(TensorStep, WeighsClasses) {
  using fused::Input, fused::Split;
  expect_weighted(cnn_instances<Split::forward, Input::bytes>());
  weighs_ = true;
  expect_transformed(cnn_instances<Split::forward, Input::bytes, true>());
}

}  // namespace
}  // namespace cudp
