#pragma once
// What the tests of the fused kernel on tensor cores (kernels/fused/fused_kernel.cuh) share: its
// instances, launches of them, and what must hold of each task.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/compiled_fused.hpp"
#include "tests/kernels/fused_network.hpp"

namespace cudp {
namespace {

/// An instance of the kernel.
struct TensorInstance {
  const char* name;
  cases::Case network;
  void (*kernel)(FusedSum);
  std::size_t shared_bytes;
  int examples;
  bool wants_bytes, transforms;
  double precision;  ///< of norms and sums, relative
  std::vector<PackedPlace> (*places)();
  std::vector<unsigned char> (*image)();
  std::uint32_t low;
};

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
          transforms,
          split == fused::Split::all ? 3e-6 : 1e-3,
          fused::Packed<P>::places,
          fused::Packed<P>::image,
          fused::Packed<P>::kLow};
}

/// Instances that give the same bits: those of a network, precision and kind of features.
using SameBits = std::vector<TensorInstance>;

const cases::Case kTensorCnn{"cnn", "cnn", {1, 28, 28}, 10};
const cases::Case kTensorScatter{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10};

class TensorStep : public FusedNetworkTest {
 protected:
  void use(const TensorInstance& t) {
    if (shared_bytes() < t.shared_bytes) GTEST_SKIP() << "the device has too little shared memory";
    use_network(t.network);
  }

  FusedSum arguments(FusedTask task, const TensorInstance& t, const Dataset& data, int blocks) {
    FusedSum a = arguments_of(task, data, blocks);
    set_packed(a, t.places(), t.image(), t.low);
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
    if (t.transforms)
      a.transform = {.mean = device(mean_.empty() ? std::vector<float>(d_, 0.0f) : mean_),
                     .inverse = device(mean_.empty() ? std::vector<float>(d_, 1.0f) : inverse_)};
    a.sum_scale = device_scale(clip.clip_norm, sum_grid(static_cast<double>(clip.clip_norm)));
    return left_by(t, a, examples);
  }
  Left left_by(const TensorInstance& t, const FusedSum& a,
               const std::vector<std::uint32_t>& examples) {
    return FusedNetworkTest::left_by(a, examples,
                                     [&](const FusedSum& with) { run_tensor(t, with); });
  }

  Dataset features(const TensorInstance& t, std::size_t n) {
    Dataset data = cases::examples_for(t.network, n);
    if (!t.wants_bytes) return cases::as_floats(data);
    data.shift = 0.0f;
    return data;
  }

  /// With a bound above every norm, the sum over one example is its gradient.
  void expect_gradients(const TensorInstance& t, std::uint32_t examples = 3) {
    const Dataset data = features(t, examples);
    const Activate functions[] = {
        {Activation::tanh}, {Activation::tempered_sigmoid, 1.6f, 1.3f, 0.7f}, {Activation::relu}};
    for (std::uint32_t e = 0; e < examples; ++e) {
      choose(functions[e]);
      expect_gradient(data, e, t.precision,
                      [&](const ClipSettings& clip) { return sum_of(t, data, {e}, 1, clip); });
    }
  }

  /// What an example gives is the same, bit for bit, for every E, in every place of a group and of
  /// the grid, and beside any others, among them two that add nothing: a feature that is not a
  /// number, and one that fp16 does not hold.
  void expect_same_bits(const SameBits& all) {
    use(all[0]);
    constexpr std::uint32_t kExamples = 6, kBad[] = {3, 4};
    Dataset data = features(all[0], kExamples);
    const auto size = static_cast<std::size_t>(data.shape.size());
    if (!all[0].wants_bytes) {
      data.floats[kBad[0] * size + size / 4] = kNan;
      data.floats[kBad[1] * size + size / 4] = 1e6f;
    }
    const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
    std::vector<Left> alone;
    alone.reserve(kExamples);
    for (std::uint32_t e = 0; e < kExamples; ++e)
      alone.push_back(sum_of(all[0], data, {e}, 1, clip));
    for (const std::uint32_t bad : kBad) {
      if (all[0].wants_bytes) break;
      EXPECT_EQ(alone[bad].sum, std::vector<std::int64_t>(d_, 0)) << bad;
      EXPECT_EQ(alone[bad].factors[0], 0.0f) << bad;
    }
    const std::vector<std::uint32_t> orders[] = {{0, 1, 2, 3, 4, 5}, {5, 3, 0, 4, 1}, {3, 2}};
    for (const TensorInstance& t : all)
      for (const auto& order : orders)
        for (const int blocks : {1, 2}) {
          const Left left = sum_of(t, data, order, blocks, clip);
          std::vector<std::int64_t> want(d_, 0);
          for (std::size_t i = 0; i < order.size(); ++i) {
            const Left& one = alone[order[i]];
            for (std::size_t j = 0; j < d_; ++j) want[j] += one.sum[j];
            for (std::size_t g = 0; g < layers_; ++g) {
              const float square = left.squared_norms[i * layers_ + g];
              ASSERT_EQ(std::bit_cast<std::uint32_t>(square),
                        std::bit_cast<std::uint32_t>(one.squared_norms[g]))
                  << t.name << ", place " << i << ", layer " << g;
            }
            EXPECT_TRUE(left.losses[i] == one.losses[0] || one.losses[0] != one.losses[0]);
          }
          ASSERT_EQ(left.sum, want) << t.name << ", " << blocks << " blocks";
        }
  }

  /// Classes have weights. A clipped gradient is multiplied by that of its class, with the same
  /// norm, loss and factor as without; the norms of all other tasks are those of the weighted loss.
  void expect_weighted(const SameBits& all) {
    use(all[0]);
    const std::vector<std::uint32_t> order{2, 0, 1};
    Dataset data = features(all[0], order.size());
    for (std::size_t e = 0; e < order.size(); ++e)
      data.labels[e] = static_cast<std::uint8_t>(e % static_cast<std::size_t>(net_.classes));
    for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
      const ClipSettings clip{kind, 0.7f, 0.05f};
      std::vector<std::int64_t> want(d_, 0);
      for (const std::uint32_t e : order) {
        weighs_ = false;
        const Left plain = sum_of(all[0], data, {e}, 1, clip);
        weighs_ = true;
        const Left alone = sum_of(all[0], data, {e}, 1, clip);
        expect_weighted_sum(alone, plain, class_weight(data.labels[e]));
        for (std::size_t j = 0; j < d_; ++j) want[j] += alone.sum[j];
      }
      for (const TensorInstance& t : all)
        EXPECT_EQ(sum_of(t, data, order, 2, clip).sum, want) << t.name;
    }
    weighs_ = true;
    expect_norms_and_logits(all);
    expect_accepted(all);
    weighs_ = false;
  }

  /// Norms and logits are near the oracle's, and the same for every E.
  void expect_norms_and_logits(const SameBits& all) {
    use(all[0]);
    constexpr int kExamples = 5;
    const Dataset data = features(all[0], kExamples);
    const auto outputs = static_cast<std::size_t>(net_.outputs);
    const auto written = [&](const TensorInstance& t, FusedTask task) {
      FusedSum a = arguments(task, t, data, 2);
      a.batch = batch(0, kExamples, kExamples);
      const std::size_t size = task == FusedTask::norms ? kExamples : outputs * kExamples;
      float* const to = device(std::vector<float>(size, kLoud));
      (task == FusedTask::norms ? a.norms : a.logits) = to;
      run_tensor(t, a);
      return host(to, size);
    };
    const std::vector<float> norms = written(all[0], FusedTask::norms);
    const std::vector<float> logits = written(all[0], FusedTask::forward);
    const double precision = all[0].precision;
    for (std::uint32_t e = 0; e < kExamples; ++e) {
      const double norm = norm_of(data, e);
      EXPECT_NEAR(norms[e], norm, precision * norm) << e;
      const reference::Values z = reference::logits(
          net_, reference::Values(theta_.begin(), theta_.end()), reference::features(data, e));
      for (std::size_t o = 0; o < outputs; ++o)
        EXPECT_NEAR(logits[outputs * e + o], z[o], precision * (1 + std::abs(z[o]))) << e;
    }
    for (const TensorInstance& t : all) {
      EXPECT_EQ(written(t, FusedTask::norms), norms) << t.name;
      EXPECT_EQ(written(t, FusedTask::forward), logits) << t.name;
    }
  }

  /// Candidates are accepted as their norms and words say, and add their direction; the same for
  /// every E.
  void expect_accepted(const SameBits& all) {
    use(all[0]);
    constexpr std::uint32_t kExamples = 6;
    const Dataset data = features(all[0], kExamples);
    const auto accepted = [&](const TensorInstance& t, const std::vector<std::uint32_t>& order,
                              int blocks) {
      FusedSum a = arguments(FusedTask::accept, t, data, blocks);
      set_acceptance(a, kExamples);
      return std::pair{left_by(t, a, order), host(a.norms, kExamples)};
    };
    int taken = 0;
    std::vector<std::int64_t> want(d_, 0);
    std::vector<float> norms(kExamples), factors(kExamples);
    for (std::uint32_t e = 0; e < kExamples; ++e) {
      const auto [alone, norm] = accepted(all[0], {e}, 1);
      norms[e] = norm[e];
      factors[e] = alone.factors[0];
      const double true_norm = norm_of(data, e);
      EXPECT_NEAR(norms[e], true_norm, all[0].precision * true_norm) << e;
      const float factor = factor_by_rule(e, norms[e]);
      EXPECT_NEAR(factors[e], factor, 1e-5f * factor) << e;
      for (std::size_t j = 0; j < d_; ++j) want[j] += alone.sum[j];
      if (factor == 0.0f) continue;
      ASSERT_GT(true_norm, 0.0);
      ++taken;
      const reference::Values gradient = truth(data, e).gradient;
      std::vector<double> got(d_), direction(d_);
      for (std::size_t j = 0; j < d_; ++j) {
        got[j] = static_cast<double>(alone.sum[j]) * sum_grid(1.0);
        direction[j] = gradient[j] / true_norm;
      }
      const auto [error, size] = cases::distance(got.data(), direction.data(), d_);
      EXPECT_TRUE(error <= all[0].precision + sum_grid(1.0) * std::sqrt(static_cast<double>(d_)))
          << e << ": " << error << " of " << size;
    }
    EXPECT_GT(taken, 0);
    for (const TensorInstance& t : all)
      for (const int blocks : {1, 2}) {
        const std::vector<std::uint32_t> order{5, 0, 3, 1, 2, 4};
        const auto [left, norm] = accepted(t, order, blocks);
        EXPECT_EQ(left.sum, want) << t.name;
        EXPECT_EQ(norm, norms) << t.name;
        for (std::size_t i = 0; i < order.size(); ++i)
          EXPECT_EQ(left.factors[i * layers_], factors[order[i]]) << t.name;
      }
  }

  /// Sums of w = (g - mean) / scale are near the oracle's, and the same for every E.
  void expect_transformed(const SameBits& all) {
    use(all[0]);
    const std::vector<std::uint32_t> order{0, 1, 2, 3, 4};
    const Dataset data = features(all[0], order.size());
    const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
    const double unit = sum_grid(static_cast<double>(clip.clip_norm));
    mean_.resize(d_);
    inverse_.resize(d_);
    for (std::size_t j = 0; j < d_; ++j) {
      mean_[j] = 1e-3f * static_cast<float>(j % 7);
      inverse_[j] = 0.5f + 0.25f * static_cast<float>(j % 5);
    }
    Left first;
    for (const TensorInstance& t : all) {
      const Left left = sum_of(t, data, order, 2, clip);
      if (first.sum.empty()) first = left;
      EXPECT_EQ(left.sum, first.sum) << t.name;
      EXPECT_EQ(left.squared_norms, first.squared_norms) << t.name;
    }
    const double precision = all[0].precision;
    reference::Values exact(d_, 0.0);
    for (const std::uint32_t e : order) {
      reference::Values w = truth(data, e).gradient;
      for (std::size_t j = 0; j < d_; ++j) w[j] = (w[j] - mean_[j]) * inverse_[j];
      const auto squares = reference::squared_norms(net_, w);
      const auto factors = reference::clip_factors(clip, squares);
      for (std::size_t g = 0; g < layers_; ++g)
        EXPECT_NEAR(first.squared_norms[e * layers_ + g], squares[g],
                    2 * precision * (squares[g] + 0.01))
            << "example " << e << ", layer " << g;
      for (std::size_t j = 0; j < d_; ++j) exact[j] += factors[0] * w[j];
    }
    std::vector<double> got(d_);
    for (std::size_t j = 0; j < d_; ++j) got[j] = static_cast<double>(first.sum[j]) * unit;
    const auto [error, size] = cases::distance(got.data(), exact.data(), d_);
    EXPECT_TRUE(error <= precision * size + 3 * unit * std::sqrt(static_cast<double>(d_)))
        << error << " of " << size;
    mean_.clear();
  }

  std::vector<float> mean_, inverse_;  // empty: mean 0, scale 1
};

template <fused::Split split, fused::Input input, bool transforms = false>
SameBits cnn_instances() {
  using fused::Cnn;
  SameBits v{tensor_instance<Cnn, split, input, 1, transforms>("one", kTensorCnn),
             tensor_instance<Cnn, split, input, 2, transforms>("two", kTensorCnn)};
  if constexpr (split == fused::Split::forward && input == fused::Input::bytes)
    v.push_back(tensor_instance<Cnn, split, input, 4, transforms>("four", kTensorCnn));
  return v;
}
template <fused::Split split>
SameBits scatter_instances() {
  using fused::Input, fused::ScatterCnn;
  SameBits v{tensor_instance<ScatterCnn, split, Input::numbers, 1>("one", kTensorScatter)};
  if constexpr (split == fused::Split::forward)
    v.push_back(tensor_instance<ScatterCnn, split, Input::numbers, 2>("two", kTensorScatter));
  return v;
}

}  // namespace
}  // namespace cudp
