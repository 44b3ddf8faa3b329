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
