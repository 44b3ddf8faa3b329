#pragma once
// The fused kernels' sums of transformed gradients (kernels/contribution/coordinates_math.hpp)
// against the oracle: every example alone, how much it adds at most, and sums that depend on
// nothing but the examples.
#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/cuda_fused_fixture.hpp"

namespace cudp {
namespace {

class FusedTransformed : public FusedStep {
 protected:
  FusedTransformed() { kernels_ = transformed_kernels(net_); }

  void SetUp() override {
    std::erase_if(kernels_,
                  [&](const cuda::FusedKernel& k) { return k.shared_bytes > shared_bytes(); });
    if (kernels_.empty()) GTEST_SKIP() << "the device has too little shared memory";
  }

  /// What gradients are transformed by.
  struct Coordinates {
    std::vector<float> mean, inverse;  ///< [d]

    /// |m / scale|.
    double shift() const {
      double square = 0.0;
      for (std::size_t j = 0; j < mean.size(); ++j)
        square += std::pow(static_cast<double>(mean[j]) * static_cast<double>(inverse[j]), 2);
      return std::sqrt(square);
    }
  };

  /// Scales of different sizes, and means with the given |m / scale|.
  Coordinates coordinates(double shift) const {
    Coordinates c{normals(d_, 31), normals(d_, 32)};
    for (float& v : c.inverse) v = std::exp(v);
    const double is = c.shift();
    for (float& m : c.mean) m = static_cast<float>(static_cast<double>(m) * shift / is);
    return c;
  }

  Left transformed_of(const Dataset& data, const Listed& listed, const Coordinates& c,
                      float max_norm, const cuda::FusedKernel& kernel) {
    FusedSum a = arguments(FusedTask::clip, data, listed.blocks, kernel);
    a.clip = {};
    a.transform = {.mean = device(c.mean), .inverse = device(c.inverse)};
    a.sum_scale = device_scale(max_norm, static_cast<double>(unit_of(max_norm)));
    return left_by(a, listed, kernel);
  }

  /// (g - m) / scale, in double.
  reference::Values transformed(const reference::ExampleGradient& e, const Coordinates& c) const {
    reference::Values w(d_);
    for (std::size_t j = 0; j < d_; ++j)
      w[j] = (e.gradient[j] - static_cast<double>(c.mean[j])) * static_cast<double>(c.inverse[j]);
    return w;
  }

  static double norm(const reference::Values& v) {
    double square = 0.0;
    for (const double x : v) square += x * x;
    return std::sqrt(square);
  }
  /// Of what a launch has left in its first block's slab, in the sum's own unit.
  double norm_left(const Left& left, float max_norm) const {
    double square = 0.0;
    for (std::size_t j = 0; j < d_; ++j) square += std::pow(static_cast<double>(left.slabs[j]), 2);
    return std::sqrt(square) * static_cast<double>(unit_of(max_norm));
  }

 private:
  /// Of dense layers also by as little memory as they take, so that a block takes several tiles.
  static std::vector<cuda::FusedKernel> transformed_kernels(const Network& net) {
    std::vector<cuda::FusedKernel> kernels = kernels_for(net, true);
    if (const DenseShapes& d = kernels.at(0).dense; d.tile > 0) {
      const std::size_t bytes =
          kernels[0].shared_bytes / static_cast<std::size_t>(d.tile) * kTileExamples;
      for (const cuda::FusedKernel& k : cuda::fused_kernels_for(
               net, {.multiprocessors = 1, .shared_bytes = bytes}, Precision::fp32, true))
        kernels.push_back(k);
    }
    return kernels;
  }
};

INSTANTIATE_TEST_SUITE_P(All, FusedTransformed, testing::ValuesIn(kFusedCases),
                         [](const auto& info) { return std::string(info.param.network.name); });

/// With a bound above every norm the sum over one example is its w, to half a unit.
TEST_P(FusedTransformed, NumbersAndNormsOfOneExample) {
  Dataset data = examples(3);
  const double shifts[] = {0.3, 4.0, 50.0};
  for (std::uint32_t e = 0; e < 3; ++e) {
    choose(e);
    if (e == 2) data = cases::as_floats(data);
    const Coordinates by = coordinates(shifts[e]);
    const reference::ExampleGradient example = truth(data, e);
    const reference::Values w = transformed(example, by);
    const auto squares = reference::squared_norms(net_, w);
    // Rounding is of numbers as large as |g / scale| and |m / scale|.
    const double size = norm(w) + by.shift();
    const auto max_norm = static_cast<float>(norm(w) * 1.01 + 1e-3);
    const Left whole = transformed_of(data, {{e}, 2}, by, max_norm, kernels_[0]);
    EXPECT_NEAR(whole.losses[0], example.loss, precision() * (1 + example.loss));
    EXPECT_EQ(whole.losses[1], kLoud) << "there is no second example";
    const double unit = unit_of(max_norm);
    std::vector<double> got(d_);
    for (std::size_t j = 0; j < d_; ++j) got[j] = whole.slabs[j] * unit;
    const auto [error, is] = cases::distance(got.data(), w.data(), d_);
    EXPECT_TRUE(error <= precision() * size + 0.5 * unit * std::sqrt(static_cast<double>(d_)))
        << "example " << e << ": " << error << " of " << is;
    // No number is another's: each is near its own, whatever the others are.
    for (std::size_t j = 0; j < d_; ++j) {
      const double own = std::abs(w[j]) + std::abs(static_cast<double>(by.mean[j]) *
                                                   static_cast<double>(by.inverse[j]));
      ASSERT_TRUE(std::abs(got[j] - w[j]) <= 100 * precision() * own + precision() * size + unit)
          << e << ", " << j;
    }
    for (std::size_t g = 0; g < layers_; ++g) {
      EXPECT_TRUE(std::abs(whole.squared_norms[g] - squares[g]) <= 2 * precision() * size * size)
          << "layer " << g << ": " << whole.squared_norms[g] << ", " << squares[g];
      EXPECT_EQ(whole.factors[g], 1.0f);
    }
    EXPECT_EQ(whole.slabs[d_], kLoudUnits) << "a block without examples writes nothing";
    for (std::size_t other = 1; other < kernels_.size(); ++other) {
      const Left same = transformed_of(data, {{e}, 2}, by, max_norm, kernels_[other]);
      EXPECT_EQ(whole.slabs, same.slabs) << "whatever is in shared memory";
      EXPECT_EQ(whole.squared_norms, same.squared_norms);
    }
  }
}

/// However terms cancel in w, an example adds a vector of norm 1: what was squared is what is
/// added. A norm made of |g / scale|, |m / scale| and their product would be rounding errors alone
/// in the last case, where m is the gradient itself, and w is what float32 leaves of it.
TEST_P(FusedTransformed, NoExampleAddsMoreThanTheBound) {
  const Dataset data = examples(2);
  const double rounding = 1e-6 + 0.5 * unit_of(1.0f) * std::sqrt(static_cast<double>(d_));
  for (std::uint32_t e = 0; e < 2; ++e) {
    const reference::ExampleGradient example = truth(data, e);
    for (const double away : {1.0, 1e-3, 0.0}) {
      Coordinates by = coordinates(1.0);
      for (std::size_t j = 0; j < d_; ++j)
        by.mean[j] = static_cast<float>(example.gradient[j] + away * by.mean[j]);
      for (float& v : by.inverse) v *= 1e12f;
      const Left left = transformed_of(data, {{e}}, by, 1.0f, kernels_[0]);
      const double adds = norm_left(left, 1.0f);
      EXPECT_LE(adds, 1.0 + rounding) << "example " << e << ", " << away;
      EXPECT_TRUE(away == 0.0 || left.factors[0] < 1.0f) << away;
      if (left.factors[0] == 1.0f) continue;  // svm's numbers are exact: nothing is left of w
      EXPECT_GE(adds, 1.0 - rounding) << "example " << e << ", " << away;
    }
  }
}

/// The sum over examples is, in units, the sum of what each example alone gives, whatever the
/// number of blocks, the order of the examples, where the batch starts and what is in shared
/// memory. Those that are not finite add nothing.
TEST_P(FusedTransformed, SumsDependOnTheExamplesAlone) {
  constexpr int kSeveral = 9;  // more than two tiles of the smallest kernels
  Dataset data = cases::as_floats(examples(kSeveral));
  const auto features = static_cast<std::size_t>(data.shape.size());
  data.floats[4 * features + features / 2] = kNan;
  data.floats[2 * features + 1] = std::numeric_limits<float>::infinity();  // tanh makes it finite
  const Coordinates by = coordinates(2.0);
  std::vector<std::int64_t> want(d_, 0);
  reference::Values exact(d_, 0.0);
  Listed listed{.examples = {1}, .blocks = 1, .first = 1};  // it starts before the micro-batch
  for (const std::uint32_t e : {8u, 5u, 4u, 2u, 3u, 0u, 7u, 6u, 0u}) {
    listed.examples.push_back(e);
    const Left alone = transformed_of(data, {{e}}, by, 1.0f, kernels_[0]);
    for (std::size_t j = 0; j < d_; ++j) want[j] += alone.slabs[j];
    if (e == 2 || e == 4) {
      EXPECT_EQ(alone.slabs, std::vector<std::int32_t>(d_, 0));
      for (std::size_t g = 0; g < layers_; ++g) EXPECT_EQ(alone.factors[g], 0.0f);
      continue;
    }
    const reference::Values w = transformed(truth(data, e), by);
    const double factor = 1.0 / std::fmax(1.0, norm(w));
    for (std::size_t g = 0; g < layers_; ++g) expect_near(alone.factors[g], factor, factor, 0);
    for (std::size_t j = 0; j < d_; ++j) exact[j] += factor * w[j];
  }
  for (const cuda::FusedKernel& kernel : kernels_)
    for (const int blocks : {1, 3, 132}) {
      if (&kernel != &kernels_.back() && blocks != 3) continue;
      listed.blocks = blocks;
      const Left sum = transformed_of(data, listed, by, 1.0f, kernel);
      std::vector<double> got(d_);
      for (std::size_t j = 0; j < d_; ++j) {
        const auto units = static_cast<std::int64_t>(sum.fixed[j]);
        ASSERT_EQ(units, want[j]) << j << " with " << blocks << " blocks";
        got[j] = static_cast<double>(units) * unit_of(1.0f);
      }
      const auto [error, size] = cases::distance(got.data(), exact.data(), d_);
      EXPECT_TRUE(error <= 3 * precision() + 3 * unit_of(1.0f) * std::sqrt(static_cast<double>(d_)))
          << error << " of " << size;
    }
}

/// Blocks take more examples than a tile has, and than a warp has lanes.
TEST_P(FusedTransformed, ManyExamplesOfABlockAreAddedOneByOne) {
  constexpr std::uint32_t kMany = 70;
  if (d_ > 30'000) GTEST_SKIP() << "smaller networks show the same";
  const Dataset data = examples(kMany);
  const Coordinates by = coordinates(0.5);
  Listed listed;
  for (std::uint32_t e = 0; e < kMany; ++e) listed.examples.push_back(e);
  const Left together = transformed_of(data, listed, by, 1.0f, kernels_[0]);
  listed.blocks = 7;
  const Left apart = transformed_of(data, listed, by, 1.0f, kernels_.back());
  EXPECT_EQ(together.fixed, apart.fixed);
  for (std::uint32_t e = 0; e < kMany * layers_; ++e) {
    EXPECT_EQ(together.squared_norms[e], apart.squared_norms[e]) << e;
    EXPECT_EQ(together.factors[e], apart.factors[e]) << e;
  }
}

TEST_P(FusedTransformed, AnEmptyBatchAddsNothing) {
  const Left sum = transformed_of(examples(1), {{}, 3}, coordinates(1.0), 1.0f, kernels_[0]);
  for (const std::int32_t v : sum.slabs) ASSERT_EQ(v, kLoudUnits);
  for (const FixedPoint v : sum.fixed) ASSERT_EQ(v, 0u);
}

}  // namespace
}  // namespace cudp
