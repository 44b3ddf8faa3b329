#pragma once
// What the tests of all fused kernels share: a network and its weights, a launch's arguments, what
// a sum leaves, and what the oracle says of an example.
#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/step/packed_image.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

class FusedNetworkTest : public CudaKernel {
 protected:
  /// What a sum leaves: of each example, and over all blocks.
  struct Left {
    std::vector<float> losses, squared_norms, factors;
    std::vector<std::int64_t> sum;
  };

  FusedNetworkTest() = default;
  explicit FusedNetworkTest(const cases::Case& c) { use_network(c); }

  void use_network(const cases::Case& c) {
    net_ = cases::network_of(c);
    theta_ = cases::weights_for(net_).parameters;
    d_ = net_.parameter_count;
    layers_ = static_cast<std::size_t>(net_.groups);
  }
  void choose(const Activate& f) {
    for (NetworkLayer& l : net_.layers)
      if (auto* a = std::get_if<Activate>(&l.layer)) *a = f;
  }

  /// Arguments of every kernel; of texts without features.
  FusedSum arguments_of(FusedTask task, const Dataset& data, int blocks) {
    FusedSum a{};
    a.task = task;
    if (data.is_bytes())
      a.bytes = device(data.bytes);
    else if (!data.floats.empty())
      a.floats = device(data.floats);
    a.scale = data.scale;
    a.shift = data.shift;
    a.labels = device(data.labels);
    if (weighs_) a.class_weights = class_weights(net_.classes);
    a.parameters = device(theta_);
    int n = 0;
    for (const NetworkLayer& l : net_.layers)
      if (const auto* f = std::get_if<Activate>(&l.layer)) a.functions[n++] = *f;
    a.stripe = 1;
    a.blocks = blocks;
    return a;
  }
  void set_packed(FusedSum& a, const std::vector<PackedPlace>& places,
                  const std::vector<unsigned char>& bytes, std::uint32_t low) {
    const PackedImage image{device(places), device(bytes), low};
    run(pack_kernel, PackParameters{image, a.parameters, static_cast<std::int64_t>(d_)});
    a.packed = image.bytes;
  }
  /// All examples are candidates, whose norm was 0.8.
  void set_acceptance(FusedSum& a, std::uint32_t examples) {
    a.accept = {.rule = device(std::vector{rule_}),
                .stream = stream_,
                .step = device(std::vector<std::uint64_t>{7})};
    a.norms = device(std::vector<float>(examples, 0.8f));
    a.sum_scale = device_scale(1.0f, sum_grid(1.0));
  }
  float factor_by_rule(std::uint32_t example, float norm) const {
    RandomStream at = stream_;
    at.step = 7;
    float seen = 0.8f;
    return accept_candidate(rule_, at, example, norm * norm, &seen);
  }

  /// Returns what the sum over these examples leaves. launch: runs it, with the arguments.
  template <class Launch>
  Left left_by(FusedSum a, const std::vector<std::uint32_t>& examples, const Launch& launch) {
    const auto n = static_cast<int>(examples.size());
    a.batch = batch(0, n, static_cast<unsigned>(n));
    a.examples = device(examples);
    const auto size = static_cast<std::size_t>(a.blocks) * d_;
    a.slabs = device(std::vector<std::int32_t>(size, 0));
    a.losses = device(std::vector<float>(examples.size(), kLoud));
    a.squared_norms = device(std::vector<float>(layers_ * examples.size(), kLoud));
    a.factors = device(std::vector<float>(layers_ * examples.size(), kLoud));
    launch(a);
    Left left{.losses = host(a.losses, examples.size()),
              .squared_norms = host(a.squared_norms, layers_ * examples.size()),
              .factors = host(a.factors, layers_ * examples.size()),
              .sum = std::vector<std::int64_t>(d_, 0)};
    const std::vector<std::int32_t> slabs = host(a.slabs, size);
    for (std::size_t j = 0; j < size; ++j) left.sum[j % d_] += slabs[j];
    return left;
  }

  /// Loss and gradient by the oracle. With weighs_, the gradient is that of the weighted loss.
  reference::ExampleGradient truth(const Dataset& data, std::uint32_t example) const {
    auto of = reference::gradient(net_, reference::Values(theta_.begin(), theta_.end()),
                                  reference::features(data, example), data.labels[example]);
    if (weighs_)
      for (double& g : of.gradient) g *= class_weight(data.labels[example]);
    return of;
  }
  /// The norm of a gradient; 0 if it is not finite.
  double norm_of(const reference::ExampleGradient& e) const {
    double square = 0;
    for (const double s : reference::squared_norms(net_, e.gradient)) square += s;
    return std::isfinite(square) ? std::sqrt(square) : 0.0;
  }
  double norm_of(const Dataset& data, std::uint32_t example) const {
    return norm_of(truth(data, example));
  }

  /// Requires that the sum over one example, clipped to more than its norm, is its gradient.
  /// precision: relative. sum_by: returns what the sum leaves that is clipped by its argument.
  template <class SumBy>
  void expect_gradient(const Dataset& data, std::uint32_t example, double precision,
                       const SumBy& sum_by) {
    const auto want = truth(data, example);
    const auto squares = reference::squared_norms(net_, want.gradient);
    const double norm = norm_of(want);
    const ClipSettings clip{Clipping::flat, static_cast<float>(norm * 1.01 + 1e-3), 0.01f};
    const Left left = sum_by(clip);
    EXPECT_NEAR(left.losses[0], want.loss, precision * (1 + want.loss)) << example;
    const double unit = sum_grid(static_cast<double>(clip.clip_norm));
    for (const ParameterTensor& p : net_.parameters) {
      std::vector<double> got(p.size);
      for (std::size_t j = 0; j < p.size; ++j)
        got[j] = static_cast<double>(left.sum[p.offset + j]) * unit;
      const auto [error, size] =
          cases::distance(got.data(), want.gradient.data() + p.offset, p.size);
      EXPECT_TRUE(error <=
                  precision * (size + norm * 0.01) + unit * std::sqrt(static_cast<double>(p.size)))
          << net_.spec.name << ", example " << example << ", " << p.name << ": " << error << " of "
          << size;
    }
    for (std::size_t g = 0; g < layers_; ++g) {
      EXPECT_NEAR(left.squared_norms[g], squares[g],
                  2 * precision * (squares[g] + norm * norm * 0.01))
          << "layer " << g;
      EXPECT_EQ(left.factors[g], 1.0f);
    }
  }

  bool weighs_ = false;  ///< classes have weights
  Network net_;
  std::vector<float> theta_;
  std::size_t d_ = 0, layers_ = 0;
  const ImportanceRule rule_{.clip = 1.0, .rate = 0.9};
  const RandomStream stream_{Generator::chacha20, {1, 2, 3}, Stream::acceptance, 0};
};

}  // namespace
}  // namespace cudp
