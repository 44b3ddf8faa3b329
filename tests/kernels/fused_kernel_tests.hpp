#pragma once
// The fused kernel on tensor cores (kernels/fused/fused_kernel.cuh) against the oracle, example by
// example, and against itself: results depend on no E, grid, place or neighbour, by a bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/fused/fused_kernel.cuh"
#include "kernels/step/packed_image.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

/// An instance of the kernel.
struct TensorInstance {
  const char* name;
  cases::Case network;
  void (*kernel)(FusedSum);
  std::size_t shared_bytes;
  int examples;
  bool wants_bytes;
  double precision;  ///< of norms and sums, relative
  std::vector<PackedPlace> (*places)();
  std::vector<unsigned char> (*image)();
  std::uint32_t low;
};
void PrintTo(const TensorInstance& c, std::ostream* os) { *os << c.name; }

template <class N, fused::Split split, fused::Input input, int E, bool transforms = false>
TensorInstance tensor_instance(const char* name, const cases::Case& network) {
  using P = fused::Plan<N, split, input, E, transforms>;
  static_assert(fused::shared_bytes<P>() <= fused::kMaxShared);
  return {name,
          network,
          fused::fused_kernel<P>,
          fused::shared_bytes<P>(),
          E,
          input == fused::Input::bytes,
          split == fused::Split::all ? 3e-6 : 1e-3,
          fused::Packed<P>::places,
          fused::Packed<P>::image,
          fused::Packed<P>::kLow};
}

const cases::Case kTensorCnn{"cnn", "cnn", {1, 28, 28}, 10};
const cases::Case kTensorScatter{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10};

class TensorStep : public CudaKernel {
 protected:
  struct Left {
    std::vector<std::int32_t> slabs;
    std::vector<float> losses, squared_norms, factors;
    std::vector<std::int64_t> sum;
  };

  void use(const TensorInstance& t) {
    if (shared_bytes() < t.shared_bytes) GTEST_SKIP() << "the device has too little shared memory";
    net_ = cases::network_of(t.network);
    theta_ = cases::weights_for(net_).parameters;
    d_ = net_.parameter_count;
    layers_ = static_cast<std::size_t>(net_.groups);
  }

  FusedSum arguments(FusedTask task, const TensorInstance& t, const Dataset& data, int blocks) {
    FusedSum a{};
    a.task = task;
    if (data.is_bytes())
      a.bytes = device(data.bytes);
    else
      a.floats = device(data.floats);
    a.labels = device(data.labels);
    a.scale = data.scale;
    a.shift = data.shift;
    a.parameters = device(theta_);
    int n = 0;
    for (const NetworkLayer& l : net_.layers)
      if (const auto* f = std::get_if<Activate>(&l.layer)) a.functions[n++] = *f;
    a.turn = 1;
    a.blocks = blocks;
    const PackedImage image{device(t.places()), device(t.image()), t.low};
    run(pack_kernel, PackParameters{image, a.parameters, static_cast<std::int64_t>(d_)});
    a.packed = image.bytes;
    return a;
  }

  void run_tensor(const TensorInstance& t, const FusedSum& a) {
    validate(a);
    allow_shared(t.kernel, t.shared_bytes);
    launch(t.kernel, a,
           LaunchShape{.grid = {static_cast<unsigned>(a.blocks)},
                       .block = {fused::kThreads},
                       .shared_bytes = t.shared_bytes});
  }

  Left sum_of(const TensorInstance& t, const Dataset& data,
              const std::vector<std::uint32_t>& examples, int blocks, const ClipSettings& clip) {
    FusedSum a = arguments(FusedTask::clip, t, data, blocks);
    a.clip = {clip.kind, clip.stability};
    a.sum_scale = device_scale(clip.clip_norm, sum_grid(static_cast<double>(clip.clip_norm)));
    const auto n = static_cast<int>(examples.size());
    a.batch = batch(0, n, static_cast<unsigned>(n));
    a.examples = device(examples);
    const auto size = static_cast<std::size_t>(blocks) * d_;
    a.slabs = device(std::vector<std::int32_t>(size, 0));
    a.losses = device(std::vector<float>(examples.size(), kLoud));
    a.squared_norms = device(std::vector<float>(layers_ * examples.size(), kLoud));
    a.factors = device(std::vector<float>(layers_ * examples.size(), kLoud));
    run_tensor(t, a);
    Left left{.slabs = host(a.slabs, size),
              .losses = host(a.losses, examples.size()),
              .squared_norms = host(a.squared_norms, layers_ * examples.size()),
              .factors = host(a.factors, layers_ * examples.size()),
              .sum = std::vector<std::int64_t>(d_, 0)};
    for (std::size_t j = 0; j < size; ++j) left.sum[j % d_] += left.slabs[j];
    return left;
  }

  reference::ExampleGradient truth(const Dataset& data, std::uint32_t example) const {
    return reference::gradient(net_, reference::Values(theta_.begin(), theta_.end()),
                               reference::features(data, example), data.labels[example]);
  }

  void choose(const Activate& f) {
    for (NetworkLayer& l : net_.layers)
      if (auto* a = std::get_if<Activate>(&l.layer)) *a = f;
  }

  /// With a bound above every norm, the sum over one example is its gradient.
  void expect_gradients(const TensorInstance& t) {
    Dataset data = cases::examples_for(t.network, 3);
    if (t.wants_bytes)
      data.shift = 0.0f;
    else
      data = cases::as_floats(data);
    const Activate functions[] = {
        {Activation::tanh}, {Activation::tempered_sigmoid, 1.6f, 1.3f, 0.7f}, {Activation::relu}};
    for (std::uint32_t e = 0; e < 3; ++e) {
      choose(functions[e]);
      const auto want = truth(data, e);
      const auto squares = reference::squared_norms(net_, want.gradient);
      double norm = 0;
      for (const double s : squares) norm += s;
      norm = std::sqrt(norm);
      const ClipSettings clip{Clipping::flat, static_cast<float>(norm * 1.01 + 1e-3), 0.01f};
      const Left left = sum_of(t, data, {e}, 1, clip);
      EXPECT_NEAR(left.losses[0], want.loss, t.precision * (1 + want.loss)) << e;
      const double unit = sum_grid(static_cast<double>(clip.clip_norm));
      for (const ParameterTensor& p : net_.parameters) {
        std::vector<double> got(p.size);
        for (std::size_t j = 0; j < p.size; ++j)
          got[j] = static_cast<double>(left.slabs[p.offset + j]) * unit;
        const auto [error, size] =
            cases::distance(got.data(), want.gradient.data() + p.offset, p.size);
        EXPECT_TRUE(error <= t.precision * (size + norm * 0.01) +
                                 unit * std::sqrt(static_cast<double>(p.size)))
            << "example " << e << ", " << p.name << ": " << error << " of " << size;
        worst_ = std::max(worst_, error / size);
      }
      for (std::size_t g = 0; g < layers_; ++g) {
        EXPECT_NEAR(left.squared_norms[g], squares[g], 2 * t.precision * (squares[g] + norm * norm * 0.01))
            << "layer " << g;
        EXPECT_EQ(left.factors[g], 1.0f);
      }
    }
  }

  Network net_;
  std::vector<float> theta_;
  std::size_t d_ = 0, layers_ = 0;
  double worst_ = 0;  ///< relative error of a tensor
};

template <class N, fused::Split split, fused::Input input, int E>
void tensor_test(TensorStep& t) {}

#define TENSOR(N, split, input, E, net) \
  { \
    const auto t = tensor_instance<fused::N, fused::Split::split, fused::Input::input, E>(#N #split #input #E, net); \
    use(t); worst_ = 0; \
    expect_gradients(t); \
    std::printf("%s shared %zu worst %.2e\n", t.name, t.shared_bytes, worst_); \
  }
TEST_F(TensorStep, CnnGivesTheGradientOfOneExample) {
  TENSOR(Cnn, forward, bytes, 4, kTensorCnn);
  TENSOR(Cnn, forward, bytes, 1, kTensorCnn);
  TENSOR(Cnn, forward, numbers, 2, kTensorCnn);
  TENSOR(Cnn, all, bytes, 1, kTensorCnn);
  TENSOR(Cnn, all, numbers, 1, kTensorCnn);
  TENSOR(ScatterCnn, forward, numbers, 1, kTensorScatter);
  TENSOR(ScatterCnn, all, numbers, 1, kTensorScatter);
  for (const auto& [at, loads] : simt::matrix_loads)
    std::printf("%s:%d: %ld matrices, %ld conflicts\n", at.first, at.second, loads.matrices, loads.conflicts);
}

}  // namespace
}  // namespace cudp
