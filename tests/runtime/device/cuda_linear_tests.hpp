#pragma once
// Linear models on a device, kernel by kernel and the engine, against definitions in double and
// against the CPU's engine.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/linear/linear_model.cuh"
#include "runtime/base/random_key.hpp"
#include "runtime/device/cuda/linear.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/support/linear_oracle.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using cuda::DeviceLinear;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_F(CudaKernel, LinearScores) {
  constexpr int kTiles = 3;
  for (const int d : {1, 2, 33, 125, 126}) {
    const std::vector<float> x = normals(std::size_t{kTiles} * d * kTile, 1);
    const std::vector<float> w = normals(static_cast<std::size_t>(d), 2);
    const LinearScores a{
        device(x), device(w), device(std::vector<float>(std::size_t{kTiles} * kTile, kLoud)),
        1,         kTiles,    d};
    run(linear_scores_kernel, a);
    const std::vector<float> got = host(a.scores, std::size_t{kTiles} * kTile);
    for (int i = 0; i < kTiles * kTile; ++i) {
      double want = 0.0;
      double size = 0.0;
      for (int j = 0; j < d; ++j) {
        const double term =
            static_cast<double>(x[(i / kTile * d + j) * kTile + i % kTile]) * double{w[j]};
        want += term;
        size += std::abs(term);
      }
      if (i < kTile)
        EXPECT_EQ(got[i], kLoud) << "a tile that was not asked for";
      else
        EXPECT_TRUE(std::abs(got[i] - want) <= 5e-6 * size) << d << ", example " << i;
    }
  }
}

const std::vector<float> kScores = {0.0f,   0.25f, -0.25f, 0.999f, -0.999f,   1.0f,      -1.0f,
                                    1.001f, 3.0f,  -3.0f,  30.0f,  -30.0f,    100.0f,    -100.0f,
                                    1e30f,  1e-8f, 0.9f,   -1e30f, kInfinity, -kInfinity};

double loss_of(Loss loss, double m) {
  return loss == Loss::hinge ? std::fmax(0.0, 1.0 - m)
                             : std::fmax(-m, 0.0) + std::log1p(std::exp(-std::abs(m)));
}

TEST_F(CudaKernel, LinearDerivativesAreClipped) {
  constexpr float kMost = 3.0f;
  std::vector<float> scores, signs, norms;
  for (const float sign : {1.0f, -1.0f, 0.0f})
    for (const float norm : {1.0f, 2.9f, 3.1f, 20.0f, 1e30f, kInfinity}) {
      for (const float score : kScores) scores.push_back(score);
      scores.push_back(kNan);
      signs.resize(scores.size(), sign);
      norms.resize(scores.size(), norm);
    }
  const std::size_t n = scores.size();
  for (const Loss loss : {Loss::logistic, Loss::hinge}) {
    const LinearDerivatives a{device(scores),
                              device(signs),
                              device(norms),
                              device(std::vector<float>(n + 1, kLoud)),
                              static_cast<std::int64_t>(n),
                              loss,
                              kMost};
    run(linear_derivatives_kernel, a);
    const std::vector<float> got = host(a.derivatives, n + 1);
    EXPECT_EQ(got[n], kLoud);
    for (std::size_t i = 0; i < n; ++i) {
      const double y = signs[i];
      const double m = y * scores[i];
      double want = loss == Loss::hinge ? (m < 1.0 ? -y : 0.0) : -y / (1.0 + std::exp(m));
      want = std::copysign(std::fmin(std::abs(want), 3.0 / norms[i]), want);
      if (y == 0.0 || std::isnan(m)) want = 0.0;
      EXPECT_TRUE(std::abs(got[i] - want) <= 1e-5 * std::abs(want) + 2e-38)
          << scores[i] << ", " << y << ", " << norms[i] << ": " << got[i] << ", " << want;
      if (std::isinf(norms[i])) continue;
      EXPECT_LE(std::abs(double{got[i]}) * norms[i], 3.0 * (1.0 + 0x1p-22));
    }
  }
}

/// Exact, and so not off by one unit: 16 tiles and more a warp, odd numbers of features.
TEST_F(CudaKernel, LinearSumIsExact) {
  for (const int d : {1, 2, 8, 9, 33, 125})
    for (const int tiles : {1, 15, 16, 17, 40}) {
      const std::vector<float> x = normals(std::size_t{kTile} * tiles * d, 1);
      const std::vector<float> derivatives = normals(std::size_t{kTile} * tiles, 2);
      const LinearSum a{device(x),
                        device(derivatives),
                        device(std::vector<FixedPoint>(static_cast<std::size_t>(d) + 1, 7)),
                        tiles,
                        d,
                        0x1p18f};
      run(linear_sum_kernel, a);
      const std::vector<FixedPoint> got = host(a.total, static_cast<std::size_t>(d) + 1);
      EXPECT_EQ(got[d], 7u);
      for (int j = 0; j < d; ++j) {
        std::int64_t want = 7;
        for (int i = 0; i < tiles * kTile; ++i) {
          const float product = derivatives[i] * x[(i / kTile * d + j) * kTile + i % kTile];
          want += static_cast<std::int64_t>(std::nearbyint(double{product} * 0x1p18));
        }
        ASSERT_EQ(static_cast<std::int64_t>(got[j]), want) << d << ", " << tiles << ", " << j;
      }
    }
}

/// Every number as large as it may be, of either sign.
TEST_F(CudaKernel, LinearSumHoldsTheLargestNumbers) {
  constexpr int kTiles = 33;
  const float most = std::nextafter(4.0f, 0.0f) * (1.0f + 0x1p-22f);
  const auto inverse_grid = static_cast<float>(1.0 / linear_grid(std::nextafter(4.0f, 0.0f), 1e6));
  for (const float sign : {1.0f, -1.0f}) {
    const LinearSum a{device(std::vector<float>(std::size_t{kTiles} * kTile, sign * most)),
                      device(std::vector<float>(std::size_t{kTiles} * kTile, 1.0f)),
                      device(std::vector<FixedPoint>(1, 0)),
                      kTiles,
                      1,
                      inverse_grid};
    run(linear_sum_kernel, a);
    const auto each = static_cast<std::int64_t>(double{sign * most} * inverse_grid);
    EXPECT_GE(std::abs(each), 1 << 24);
    EXPECT_EQ(static_cast<std::int64_t>(host(a.total, 1)[0]), each * kTiles * kTile);
  }
}

/// One example, whose scores the steps choose: every loss by itself.
TEST_F(CudaKernel, LinearLossesOneByOne) {
  constexpr float kMost = 3.0f;
  const double grid = linear_grid(kMost, 1e6);
  std::vector<float> steps;
  for (const float score : kScores)
    if (std::isfinite(score)) steps.push_back(-score);
  const auto count = steps.size();
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const float sign : {1.0f, -1.0f, 0.0f})
      for (const float score : {0.0f, kNan}) {
        const LinearLossSums a{device(std::vector<float>{score, kLoud}),
                               device(std::vector<float>{1.0f, kLoud}),
                               device(std::vector<float>{sign, 1.0f}),
                               device(steps),
                               device(std::vector<FixedPoint>(count + 1, 5)),
                               1,
                               static_cast<int>(count),
                               loss,
                               kMost,
                               static_cast<float>(1.0 / grid)};
        run(linear_losses_kernel, a);
        const std::vector<FixedPoint> got = host(a.total, count + 1);
        EXPECT_EQ(got[count], 5u);
        for (std::size_t k = 0; k < count; ++k) {
          const double value = static_cast<double>(got[k] - 5) * grid;
          if (sign == 0.0f) {
            EXPECT_EQ(value, 0.0);
          } else if (std::isnan(score)) {
            EXPECT_EQ(value, 3.0);
          } else {
            const double want = std::fmin(loss_of(loss, -sign * double{steps[k]}), 3.0);
            EXPECT_TRUE(std::abs(value - want) <= 1e-5 * want + grid)
                << steps[k] << ", " << sign << ": " << value << ", " << want;
          }
        }
      }
}

/// Over more than a block, and past its end.
TEST_F(CudaKernel, LinearLossesAreSummed) {
  constexpr int kTiles = 301;
  constexpr std::size_t kPlaces = std::size_t{kTiles} * kTile;
  const std::vector<float> scores = normals(kPlaces, 1);
  const std::vector<float> along = normals(kPlaces, 2);
  std::vector<float> signs(kPlaces, 1.0f);
  for (std::size_t i = 0; i < kPlaces; i += 3) signs[i] = -1.0f;
  const std::vector<float> steps = {0.0f, 0.5f, 2.0f};
  const double grid = linear_grid(2.0, 1e6);
  for (const Loss loss : {Loss::logistic, Loss::hinge}) {
    const LinearLossSums a{device(scores),
                           device(along),
                           device(signs),
                           device(steps),
                           device(std::vector<FixedPoint>(3, 0)),
                           kPlaces,
                           3,
                           loss,
                           2.0f,
                           static_cast<float>(1.0 / grid)};
    run(linear_losses_kernel, a);
    const std::vector<FixedPoint> got = host(a.total, 3);
    for (std::size_t k = 0; k < 3; ++k) {
      double want = 0.0;
      for (std::size_t i = 0; i < kPlaces; ++i)
        want += std::fmin(
            loss_of(loss, signs[i] * (double{scores[i]} - double{steps[k]} * along[i])), 2.0);
      EXPECT_TRUE(std::abs(static_cast<double>(got[k]) * grid - want) <= 1e-6 * want) << k;
    }
  }
}

TEST_F(CudaKernel, LinearGatherCopiesAndFillsUp) {
  constexpr int kTiles = 4;
  for (const int d : {1, 5})
    for (const int count : {1, 16, 17, 37}) {
      const std::vector<float> x = normals(std::size_t{kTiles} * d * kTile, 1);
      const std::vector<float> signs = normals(std::size_t{kTiles} * kTile, 2);
      const std::vector<float> norms = normals(std::size_t{kTiles} * kTile, 3);
      std::vector<std::uint32_t> listed;
      listed.reserve(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) listed.push_back(static_cast<std::uint32_t>(i * 5 % 61));
      const auto slots = std::size_t{kTile} * ((count + kTile - 1) / kTile);
      const std::size_t numbers = slots * static_cast<std::size_t>(d);
      const LinearGather a{device(x),
                           device(signs),
                           device(norms),
                           device(listed),
                           count,
                           device(std::vector<float>(numbers + 1, kLoud)),
                           device(std::vector<float>(slots + 1, kLoud)),
                           device(std::vector<float>(slots + 1, kLoud)),
                           d};
      run(linear_gather_kernel, a);
      const std::vector<float> got = host(a.to_features, numbers + 1);
      const std::vector<float> got_signs = host(a.to_signs, slots + 1);
      const std::vector<float> got_norms = host(a.to_norms, slots + 1);
      EXPECT_EQ(got[numbers], kLoud);
      EXPECT_EQ(got_signs[slots], kLoud);
      EXPECT_EQ(got_norms[slots], kLoud);
      for (int i = 0; i < static_cast<int>(slots); ++i) {
        const int from = i * 5 % 61;
        EXPECT_EQ(got_signs[i], i < count ? signs[from] : 0.0f);
        EXPECT_EQ(got_norms[i], i < count ? norms[from] : 1.0f);
        for (int j = 0; j < d; ++j)
          ASSERT_EQ(got[(i / kTile * d + j) * kTile + i % kTile],
                    i < count ? x[(from / kTile * d + j) * kTile + from % kTile] : 0.0f);
      }
    }
}

TEST_F(CudaKernel, LinearArgumentsAreChecked) {
  EXPECT_THROW(validate(LinearScores{}), std::invalid_argument);
  EXPECT_THROW(validate(LinearDerivatives{}), std::invalid_argument);
  EXPECT_THROW(validate(LinearSum{}), std::invalid_argument);
  EXPECT_THROW(validate(LinearLossSums{}), std::invalid_argument);
  EXPECT_THROW(validate(LinearGather{}), std::invalid_argument);
  const LinearDerivatives softmax{device(std::vector<float>(1)),
                                  device(std::vector<float>(1)),
                                  device(std::vector<float>(1)),
                                  device(std::vector<float>(1)),
                                  1,
                                  Loss::softmax_cross_entropy,
                                  1.0f};
  EXPECT_THROW(validate(softmax), std::invalid_argument);
}

/// Sums of the two, an example's at most `each` apart.
void expect_same_sums(const std::vector<double>& got, const std::vector<double>& want, double each,
                      std::size_t examples) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t j = 0; j < want.size(); ++j)
    EXPECT_TRUE(std::abs(got[j] - want[j]) <= each * static_cast<double>(examples))
        << j << ": " << got[j] << ", " << want[j];
}

TEST(DeviceLinearEngine, SumsAreTheDefinitionsAndTheCpus) {
  const std::vector<float> steps = {0.0f, 0.3f, 2.0f};
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const int features : {1, 32, 124})
      for (const int examples : {1, 15, 16, 17, 255, 256, 257, 300}) {
        const Dataset data = linear::random_table(examples, features, 7);
        const linear::Oracle oracle{data, loss == Loss::hinge};
        const std::vector<float> w = linear::random_weights(features + 1, 8);
        const std::vector<float> d = linear::random_weights(features + 1, 9);
        DeviceLinear engine(TestGpu(), data, loss, 1e6);
        const auto cpu = make_cpu_linear_engine(data, loss, 1e6, 1);
        EXPECT_EQ(engine.dimension(), features + 1);
        EXPECT_EQ(engine.size(), data.size());
        for (const double clip : {0.4, 3.0}) {
          const std::vector<double> sum = engine.clipped_gradient_sum(w, clip);
          expect_same_sums(sum, oracle.gradient_sum(w, clip), 1e-5 * clip, data.size());
          expect_same_sums(sum, cpu->clipped_gradient_sum(w, clip), 1e-5 * clip, data.size());
          const std::vector<double> losses = engine.clipped_losses(d, steps, clip);
          std::vector<double> right;
          right.reserve(steps.size());
          for (const float a : steps)
            right.push_back(oracle.loss_sum(w, d, static_cast<double>(a), clip));
          expect_same_sums(losses, right, 2e-6 * features, data.size());
          expect_same_sums(losses, cpu->clipped_losses(d, steps, clip), 2e-6 * features,
                           data.size());
        }
        EXPECT_EQ(engine.correct(w, data), cpu->correct(w, data));
      }
}

TEST(DeviceLinearEngine, SumsAreOfTheWeightedLosses) {
  const std::vector<float> steps = {0.3f};
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const SignWeights weights : {SignWeights{0.125f, 1.0f}, SignWeights{1.0f, 0.0f}}) {
      const Dataset data = linear::random_table(77, 9, 27);
      const std::vector<float> w = linear::random_weights(10, 28);
      const std::vector<float> d = linear::random_weights(10, 29);
      const linear::Oracle oracle{data, loss == Loss::hinge, {weights.negative, weights.positive}};
      DeviceLinear engine(TestGpu(), data, loss, 1e6, weights);
      for (const double clip : {0.4, 3.0}) {
        const std::vector<double> sum = engine.clipped_gradient_sum(w, clip);
        const std::vector<double> expected = oracle.gradient_sum(w, clip);
        for (std::size_t j = 0; j < sum.size(); ++j)
          EXPECT_TRUE(std::fabs(sum[j] - expected[j]) <= 2e-6 * clip * 77);
        EXPECT_TRUE(std::fabs(engine.clipped_losses(d, steps, clip)[0] -
                              oracle.loss_sum(w, d, 0.3, clip)) <= 2e-6 * 10.0 * 77);
      }
    }
}

/// Rows are drawn by their number in the whole file, or in the whole set of several ranks.
TEST(DeviceLinearEngine, DrawsRowsByTheirNumbers) {
  Dataset gaps = linear::random_table(300, 5, 3), range = gaps;
  for (std::uint32_t i = 0; i < 300; ++i) gaps.numbers.push_back(700 + 3 * i + i % 2);
  range.first = 512;
  for (const Dataset& data : {gaps, range}) {
    DeviceLinear engine(TestGpu(), data, Loss::logistic, 1e6);
    const auto cpu = make_cpu_linear_engine(data, Loss::logistic, 1e6, 1);
    for (std::uint64_t step = 0; step < 5; ++step) {
      const RandomStream stream{Generator::chacha20, key_from_seed(4), Stream::sampling, step};
      engine.draw_batch(stream, std::uint64_t{1} << 31);
      cpu->draw_batch(stream, std::uint64_t{1} << 31);
      EXPECT_EQ(engine.batch(), cpu->batch());
      const std::vector<float> zero(6, 0.0f);
      EXPECT_EQ(engine.clipped_gradient_sum(zero, 0.7), cpu->clipped_gradient_sum(zero, 0.7));
    }
  }
}

/// At w = 0 no product is rounded on the way to the sums: every device and CPU has the same bits,
/// batches included.
TEST(DeviceLinearEngine, DrawsTheBatchesOfTheCpu) {
  const Dataset data = linear::random_table(700, 5, 3);
  const std::vector<float> zero(6, 0.0f);
  const std::vector<float> steps = {0.0f, 1.0f};
  for (const Generator generator : {Generator::chacha20, Generator::philox}) {
    DeviceLinear engine(TestGpu(), data, Loss::logistic, 1e6);
    const auto cpu = make_cpu_linear_engine(data, Loss::logistic, 1e6, 1);
    EXPECT_EQ(engine.clipped_gradient_sum(zero, 0.7), cpu->clipped_gradient_sum(zero, 0.7));
    std::uint64_t step = 0;
    for (const std::uint64_t threshold :
         {std::uint64_t{1} << 31, std::uint64_t{1} << 24, std::uint64_t{0}, std::uint64_t{1} << 32,
          std::uint64_t{3} << 30}) {
      const RandomStream stream{generator, key_from_seed(4), Stream::sampling, step++};
      engine.draw_batch(stream, threshold);
      cpu->draw_batch(stream, threshold);
      EXPECT_EQ(engine.clipped_gradient_sum(zero, 0.7), cpu->clipped_gradient_sum(zero, 0.7));
      EXPECT_EQ(engine.clipped_losses(zero, steps, 0.5), cpu->clipped_losses(zero, steps, 0.5));
    }
  }
}

TEST(DeviceLinearEngine, LeavesOutWhatIsNotFinite) {
  Dataset data = linear::random_table(30, 3, 11);
  const Dataset clean = data;
  for (const float bad : {kNan, kInfinity}) {
    data.floats.insert(data.floats.end(), {1.0f, bad, 2.0f});
    data.labels.push_back(1);
  }
  const std::vector<float> w = linear::random_weights(4, 12);
  const std::vector<float> steps = {0.0f, 1.0f};
  for (const Loss loss : {Loss::logistic, Loss::hinge}) {
    DeviceLinear dirty(TestGpu(), data, loss, 1e6);
    DeviceLinear other(TestGpu(), clean, loss, 1e6);
    for (const bool drawn : {false, true}) {
      if (drawn) {
        const RandomStream stream{Generator::chacha20, {}, Stream::sampling, 1};
        dirty.draw_batch(stream, std::uint64_t{1} << 32);
      }
      EXPECT_EQ(dirty.clipped_gradient_sum(w, 3.0), other.clipped_gradient_sum(w, 3.0));
      EXPECT_EQ(dirty.clipped_losses(w, steps, 3.0), other.clipped_losses(w, steps, 3.0));
    }
  }
}

/// What is NaN in the weights gives every example no gradient and the largest loss.
TEST(DeviceLinearEngine, ScoresThatAreNotNumbersAreBounded) {
  const Dataset data = linear::random_table(20, 3, 1);
  DeviceLinear engine(TestGpu(), data, Loss::logistic, 1e6);
  const std::vector<float> steps = {0.5f};
  EXPECT_EQ(engine.clipped_gradient_sum(std::vector<float>(4, kNan), 3.0),
            std::vector<double>(4, 0.0));
  EXPECT_EQ(engine.clipped_losses(std::vector<float>(4, 1.0f), steps, 3.0),
            std::vector<double>(1, 60.0));
}

/// Images, whose features are bytes.
TEST(DeviceLinearEngine, TakesBytes) {
  Dataset bytes;
  bytes.shape = {1, 3, 4};
  bytes.classes = 2;
  bytes.shift = -0.4f;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 12; ++j) bytes.bytes.push_back(static_cast<std::uint8_t>(i * 37 + j * 91));
    bytes.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  Dataset floats = bytes;
  for (const std::uint8_t b : bytes.bytes)
    floats.floats.push_back(bytes.scale * static_cast<float>(b) + bytes.shift);
  floats.bytes.clear();
  const std::vector<float> w = linear::random_weights(13, 2);
  DeviceLinear one(TestGpu(), bytes, Loss::hinge, 1e6);
  DeviceLinear other(TestGpu(), floats, Loss::hinge, 1e6);
  EXPECT_EQ(one.clipped_gradient_sum(w, 3.0), other.clipped_gradient_sum(w, 3.0));
}

TEST(DeviceLinearEngine, RefusesWhatItCannotDo) {
  Dataset data = linear::random_table(10, 2, 1);
  DeviceLinear engine(TestGpu(), data, Loss::logistic, 1e6);
  EXPECT_THROW(engine.clipped_gradient_sum(std::vector<float>(3), 1e-35), InputError);
  EXPECT_THROW(engine.clipped_gradient_sum(std::vector<float>(2), 1.0), Error);
  data.classes = 3;
  EXPECT_THROW(DeviceLinear(TestGpu(), data, Loss::logistic, 1e6), InputError);
}

/// Twelve iterations of DP-AGD.
DpAgdState trained(LinearEngine& engine, Loss loss, bool batches) {
  DpAgdSettings s;
  s.rho_gradient = 0.05;
  s.rho_selection = 0.02;
  s.selection = loss == Loss::hinge ? SelectionNoise::laplace : SelectionNoise::gumbel;
  s.threshold = batches ? std::uint64_t{1} << 31 : 0;
  Gate gate(Generator::chacha20, key_from_seed(6), all_paid());
  DpAgd method(s, engine, static_cast<double>(engine.size()), gate);
  DpAgdState state =
      method.begin(std::vector<float>(static_cast<std::size_t>(engine.dimension()), 0.0f));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(method.iterate(state));
  return state;
}

/// A set that a line mostly separates.
Dataset separable(int examples, int features) {
  Dataset data = linear::random_table(examples, features, 21);
  const auto width = static_cast<std::size_t>(features);
  for (std::size_t i = 0; i < data.labels.size(); ++i)
    data.labels[i] = data.floats[i * width] + 0.3f * data.floats[i * width + 1] > 0.1f ? 1 : 0;
  return data;
}

TEST(DeviceLinearEngine, TrainsAsTheCpu) {
  const Dataset data = separable(330, 6);
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const bool batches : {false, true}) {
      DeviceLinear engine(TestGpu(), data, loss, 1e6);
      const auto cpu = make_cpu_linear_engine(data, loss, 1e6, 1);
      const DpAgdState got = trained(engine, loss, batches);
      const DpAgdState want = trained(*cpu, loss, batches);
      EXPECT_EQ(got.chosen, want.chosen);
      EXPECT_EQ(got.releases, want.releases);
      for (std::size_t j = 0; j < want.w.size(); ++j)
        EXPECT_TRUE(std::abs(got.w[j] - want.w[j]) <= 1e-4f) << j;
      EXPECT_GT(cpu->correct(want.w, data), 230u) << "it learns";
    }
}

}  // namespace
}  // namespace cudp
