#include "runtime/device/linear_engine.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/linear_data.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "tests/support/linear_oracle.hpp"

namespace cudp {
namespace {

using linear::Oracle;
using linear::random_table;
using linear::random_weights;

class LinearSums : public testing::TestWithParam<std::tuple<Loss, int, int>> {};

TEST_P(LinearSums, AreThoseOfTheDefinition) {
  const auto [loss, examples, features] = GetParam();
  const Dataset data = random_table(examples, features, 7);
  const Oracle oracle{data, loss == Loss::hinge};
  const std::vector<float> w = random_weights(features + 1, 8);
  const std::vector<float> d = random_weights(features + 1, 9);
  const std::vector<float> steps = {0.0f, 0.3f, 2.0f};
  const auto engine = make_cpu_linear_engine(data, loss, 1e6, 2);
  for (const double clip : {0.4, 3.0}) {
    const std::vector<double> sum = engine->clipped_gradient_sum(w, clip);
    const std::vector<double> expected = oracle.gradient_sum(w, clip);
    ASSERT_EQ(sum.size(), expected.size());
    for (std::size_t j = 0; j < sum.size(); ++j)
      EXPECT_TRUE(std::fabs(sum[j] - expected[j]) <= 2e-6 * clip * examples)
          << j << ": " << sum[j] << " " << expected[j];
    const std::vector<double> losses = engine->clipped_losses(d, steps, clip);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const double right = oracle.loss_sum(w, d, static_cast<double>(steps[k]), clip);
      EXPECT_TRUE(std::fabs(losses[k] - right) <= 2e-6 * (1.0 + features) * examples)
          << k << ": " << losses[k] << " " << right;
    }
  }
}

/// Weights are of the losses, before anything is clipped.
TEST_P(LinearSums, AreOfTheWeightedLosses) {
  const auto [loss, examples, features] = GetParam();
  const Dataset data = random_table(examples, features, 27);
  const std::vector<float> w = random_weights(features + 1, 28);
  const std::vector<float> d = random_weights(features + 1, 29);
  for (const SignWeights weights : {SignWeights{0.125f, 1.0f}, SignWeights{1.0f, 0.0f}}) {
    const Oracle oracle{data, loss == Loss::hinge, {weights.negative, weights.positive}};
    const auto engine = make_cpu_linear_engine(data, loss, 1e6, 2, weights);
    for (const double clip : {0.4, 3.0}) {
      const std::vector<double> sum = engine->clipped_gradient_sum(w, clip);
      const std::vector<double> expected = oracle.gradient_sum(w, clip);
      for (std::size_t j = 0; j < sum.size(); ++j)
        EXPECT_TRUE(std::fabs(sum[j] - expected[j]) <= 2e-6 * clip * examples)
            << j << ": " << sum[j] << " " << expected[j];
      const double right = oracle.loss_sum(w, d, 0.3, clip);
      const std::vector<float> steps = {0.3f};
      EXPECT_TRUE(std::fabs(engine->clipped_losses(d, steps, clip)[0] - right) <=
                  2e-6 * (1.0 + features) * examples);
    }
  }
}

TEST_P(LinearSums, DoNotDependOnThreads) {
  const auto [loss, examples, features] = GetParam();
  const Dataset data = random_table(examples, features, 17);
  const std::vector<float> w = random_weights(features + 1, 18);
  const std::vector<float> steps = {0.0f, 1.0f};
  const auto one = make_cpu_linear_engine(data, loss, 1e6, 1);
  const auto three = make_cpu_linear_engine(data, loss, 1e6, 3);
  EXPECT_EQ(one->clipped_gradient_sum(w, 3.0), three->clipped_gradient_sum(w, 3.0));
  EXPECT_EQ(one->clipped_losses(w, steps, 3.0), three->clipped_losses(w, steps, 3.0));
}

INSTANTIATE_TEST_SUITE_P(All, LinearSums,
                         testing::Combine(testing::Values(Loss::logistic, Loss::hinge),
                                          testing::Values(1, 15, 16, 17, 2049, 6000),
                                          testing::Values(1, 2, 33)));

TEST(LinearKernels, AgreeOnEverySimdLevel) {
  const Dataset data = random_table(700, 20, 3);
  const LinearData x = linear_data(data);
  const std::vector<float> w = random_weights(21, 4);
  for (const Loss loss : {Loss::logistic, Loss::hinge}) {
    const std::vector<double> expected = Oracle{data, loss == Loss::hinge}.gradient_sum(w, 2.0);
    for (int level = 0; level <= static_cast<int>(best_simd_level()); ++level) {
      const CpuKernels& k = cpu_kernels(static_cast<SimdLevel>(level));
      AlignedVector<float> scores(static_cast<std::size_t>(x.tiles) * kTile);
      std::vector<double> total(std::size_t{21} * kTile, 0.0);
      k.linear_scores({x.features.data(), w.data(), scores.data(), 0, x.tiles, x.d});
      k.linear_gradient({x.features.data(), scores.data(), x.signs.data(), x.norms.data(),
                         total.data(), 0, x.tiles, x.d, loss, 2.0f, 1.0 / linear_grid(2.0, 1e6)});
      for (std::size_t j = 0; j < 21; ++j) {
        double sum = 0.0;
        for (std::size_t l = 0; l < kTile; ++l) sum += total[j * kTile + l];
        EXPECT_TRUE(std::fabs(sum * linear_grid(2.0, 1e6) - expected[j]) <= 2e-3)
            << level << " " << j;
      }
    }
  }
}

/// One example more moves the sums by no more than is promised, and the losses never down.
TEST(LinearEngine, KeepsItsSensitivity) {
  const Dataset data = random_table(40, 6, 5, 20.0f);
  const std::vector<float> w = random_weights(7, 6);
  const std::vector<float> d = random_weights(7, 60);
  const std::vector<float> steps = {0.0f, 0.5f, 1.0f};
  const auto all = make_cpu_linear_engine(data, Loss::logistic, 1e6, 1);
  const std::vector<double> whole = all->clipped_gradient_sum(w, 3.0);
  const std::vector<double> losses = all->clipped_losses(d, steps, 3.0);
  double most = 0.0;
  for (std::size_t out = 0; out < data.size(); ++out) {
    Dataset less = data;
    less.labels.erase(less.labels.begin() + static_cast<std::ptrdiff_t>(out));
    const auto at = less.floats.begin() + static_cast<std::ptrdiff_t>(6 * out);
    less.floats.erase(at, at + 6);
    const auto engine = make_cpu_linear_engine(less, Loss::logistic, 1e6, 1);
    const std::vector<double> sum = engine->clipped_gradient_sum(w, 3.0);
    double square = 0.0;
    for (std::size_t j = 0; j < sum.size(); ++j)
      square += (whole[j] - sum[j]) * (whole[j] - sum[j]);
    EXPECT_LE(std::sqrt(square), linear_gradient_sensitivity(3.0, 7, 1e6));
    most = std::fmax(most, std::sqrt(square));
    const std::vector<double> fewer = engine->clipped_losses(d, steps, 3.0);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      EXPECT_GE(losses[k] - fewer[k], 0.0);
      EXPECT_LE(losses[k] - fewer[k], linear_loss_sensitivity(3.0, 1e6));
    }
  }
  EXPECT_GT(most, 2.999);  // the clip was reached
}

TEST(LinearEngine, LeavesOutWhatIsNotFinite) {
  Dataset data = random_table(30, 3, 11);
  Dataset clean = data;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    data.floats.insert(data.floats.end(), {1.0f, bad, 2.0f});
    data.labels.push_back(1);
  }
  const std::vector<float> w = random_weights(4, 12);
  const std::vector<float> steps = {0.0f, 1.0f};
  const auto dirty = make_cpu_linear_engine(data, Loss::hinge, 1e6, 1);
  const auto other = make_cpu_linear_engine(clean, Loss::hinge, 1e6, 1);
  EXPECT_EQ(dirty->clipped_gradient_sum(w, 3.0), other->clipped_gradient_sum(w, 3.0));
  EXPECT_EQ(dirty->clipped_losses(w, steps, 3.0), other->clipped_losses(w, steps, 3.0));
}

TEST(LinearEngine, DrawsMiniBatches) {
  const Dataset data = random_table(20'000, 2, 13);
  const std::vector<float> w = random_weights(3, 14);
  const auto engine = make_cpu_linear_engine(data, Loss::logistic, 1e6, 2);
  const std::vector<double> all = engine->clipped_gradient_sum(w, 3.0);
  const RandomStream stream{Generator::chacha20, {}, Stream::sampling, 5};
  engine->draw_batch(stream, std::uint64_t{1} << 32);
  EXPECT_EQ(engine->clipped_gradient_sum(w, 3.0), all);
  engine->draw_batch(stream, std::uint64_t{1} << 30);
  const std::vector<float> zero(3, 0.0f);
  const std::vector<float> step = {0.0f};
  engine->clipped_gradient_sum(zero, 3.0);
  const double drawn = engine->clipped_losses(zero, step, 3.0)[0] / std::log(2.0);
  EXPECT_NEAR(drawn, 5'000.0, 4.9 * std::sqrt(20'000 * 0.25 * 0.75));
  engine->draw_batch(stream, 0);
  EXPECT_EQ(engine->clipped_gradient_sum(w, 3.0), std::vector<double>(3, 0.0));
  EXPECT_EQ(engine->clipped_losses(w, step, 3.0), std::vector<double>(1, 0.0));
}

TEST(LinearEngine, RefusesThreeClasses) {
  Dataset data = random_table(10, 2, 1);
  data.classes = 3;
  EXPECT_THROW(make_cpu_linear_engine(data, Loss::logistic, 1e6, 1), InputError);
}

}  // namespace
}  // namespace cudp
