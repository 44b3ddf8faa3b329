// An attacker who knows the grid, the noise's standard deviation and both candidate sums learns
// from a release what the Gaussian mechanism tells, and nothing from the bits of its numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "privacy/accountant.hpp"
#include "runtime/device/engine.hpp"
#include "tests/audit/audit.hpp"
#include "tests/support/distributions.hpp"

namespace cudp {
namespace {

using audit::kError;
using audit::kFewRuns;

/// Logistic regression on 300 features; 64 rows, of which the first has one label or the other.
struct TwoDataSets {
  static constexpr int kFeatures = 300;
  static constexpr int kRows = 64;

  TwoDataSets() {
    std::uint32_t state = 7;
    const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    for (int i = 0; i < kRows * kFeatures; ++i)
      one.floats.push_back(static_cast<float>(next()) * 0x1p-24f - 0.5f);
    for (int i = 0; i < kRows; ++i) one.labels.push_back(static_cast<std::uint8_t>(next() % 2));
    one.shape = {kFeatures, 1, 1};
    one.classes = 2;
    other = one;
    other.labels[0] ^= 1;
  }
  Dataset one;
  Dataset other;
  Network network =
      build_network(parse_model(builtin_model("logistic"), "logistic", 2), {kFeatures, 1, 1}, 2);
};

/// One step of DP-SGD with C = 1 over all rows, read from the momentum: sum and noise.
class OneStep {
 public:
  OneStep(const Network& network, const Dataset& data, std::uint64_t key, float noise_std)
      : scalars_{.learning_rate = 0.1f,
                 .noise_std = noise_std,
                 .inverse_batch = 1.0f,
                 .bias1 = 1.0f,
                 .bias2 = 1.0f,
                 .ema_decay = 0.0f,
                 .clip_norm = 1.0f} {
    recipe_.draw = Poisson{std::uint64_t{1} << 32};
    recipe_.optimizer.kind = OptimizerKind::momentum;
    EngineSettings s;
    s.recipe = recipe_;
    s.key = key_from_seed(key);
    s.threads = 1;
    engine_ = make_cpu_engine(network, s);
    engine_->load(data);
    start_.parameters.assign(network.parameter_count, 0.01f);
    start_.moment1.assign(network.parameter_count, 0.0f);
  }
  /// In units of the grid: whole numbers, below 2^24 so that floats hold them.
  std::vector<std::int64_t> released(std::uint64_t step) {
    engine_->set_state(start_);
    engine_->run(recipe_, step, {&scalars_, 1});
    std::vector<std::int64_t> units;
    for (const float g : engine_->state().moment1) {
      const double u = static_cast<double>(g) / sum_grid(1.0);
      EXPECT_EQ(u, std::nearbyint(u));
      EXPECT_LT(std::fabs(u), 0x1p24);
      units.push_back(static_cast<std::int64_t>(u));
    }
    return units;
  }

 private:
  StepScalars scalars_;
  StepRecipe recipe_;
  std::unique_ptr<Engine> engine_;
  TrainState start_;
};

/// Mironov 2012: with float noise, coordinates that no noise can give told one data set from the
/// other. Here what is left after taking either sum away is a whole number, and its low 8 bits are
/// uniform whichever is taken.
TEST(NoiseBits, TellNothingOfTheSum) {
  constexpr int kRuns = kFewRuns ? 20 : 1000;
  const TwoDataSets data;
  for (const float sigma : {1.0f, 0.25f}) {
    const auto sum = OneStep(data.network, data.one, 1, 0.0f).released(0);
    const auto other = OneStep(data.network, data.other, 1, 0.0f).released(0);
    ASSERT_NE(sum, other);
    std::vector<double> low(256);
    std::vector<double> low_of_other(256);
    OneStep step(data.network, data.one, 5, sigma);
    double count = 0.0;
    for (std::uint64_t t = 0; t < kRuns; ++t) {
      const auto r = step.released(t);
      for (std::size_t j = 0; j < r.size(); ++j) {
        low[static_cast<std::size_t>((r[j] - sum[j]) & 255)] += 1.0;
        low_of_other[static_cast<std::size_t>((r[j] - other[j]) & 255)] += 1.0;
        count += 1.0;
      }
    }
    for (const auto& counts : {low, low_of_other}) {
      double statistic = 0.0;
      for (const double c : counts) statistic += (c - count / 256) * (c - count / 256);
      EXPECT_GT(law::chi_squared_above(255, statistic / (count / 256)), kError)
          << "sigma " << sigma;
    }
  }
}

/// Box-Muller's noise from 41 bits ended at 7.54 standard deviations: releases farther than that
/// from a neighbour's sum ruled it out. They happen as often as before, but the neighbour's noise
/// reaches there, and beyond.
TEST(NoiseBits, NoReleaseIsBeyondTheNeighboursNoise) {
  constexpr int kRuns = kFewRuns ? 100 : 1200;
  constexpr double kOldEnd = 7.54;
  constexpr float kSigma = 0.2f;
  Dataset with;
  with.floats = {0.0f, 1000.0f};  // the last gradient is clipped to C, nearly all in one number
  with.labels = {1, 0};
  with.shape = {1, 1, 1};
  with.classes = 2;
  Dataset without = with;
  without.floats.pop_back();
  without.labels.pop_back();
  const Network network =
      build_network(parse_model(builtin_model("logistic"), "logistic", 2), {1, 1, 1}, 2);
  const std::int64_t other = OneStep(network, without, 1, 0.0f).released(0)[0];
  const double s = static_cast<double>(kSigma) / sum_grid(1.0);
  const FurtherDigits none{[](const void*, std::uint32_t, std::uint32_t* out) {
                             for (int i = 0; i < 16; ++i) out[i] = 0;
                           },
                           nullptr};
  OneStep step(network, with, 5, kSigma);
  int beyond = 0;
  for (std::uint64_t t = 0; t < kRuns; ++t) {
    const double units = std::fabs(static_cast<double>(step.released(t)[0] - other));
    const double z = units / s;
    if (z <= kOldEnd) continue;
    ++beyond;
    // Words of a U1 that is small enough, and no turn.
    const auto u1 = static_cast<std::uint64_t>(std::exp(-0.5 * (z + 1e-3) * (z + 1e-3)) * 0x1p64);
    const std::uint32_t words[4] = {static_cast<std::uint32_t>(u1 >> 32),
                                    static_cast<std::uint32_t>(u1), 0, 0};
    EXPECT_GE(static_cast<double>(exact_rounded_pair(words, s, none).even), units);
  }
  if (!kFewRuns) {
    RecordProperty("beyond", beyond);
    EXPECT_GT(beyond, 0);  // 6.6 are expected of noise without an end
    EXPECT_LT(beyond, 30);
  }
}

/// The likelihood ratio of the two data sets, which differ in one example's label: their sums are
/// at most 2 C apart. What it shows is below what the Gaussian mechanism of that sensitivity
/// promises.
TEST(NoiseBits, TheBestTestStaysWithinTheCertificate) {
  constexpr int kRuns = kFewRuns ? 50 : 10'000;
  const TwoDataSets data;
  constexpr float kSigma = 1.0f;
  const auto sum = OneStep(data.network, data.one, 1, 0.0f).released(0);
  const auto other = OneStep(data.network, data.other, 1, 0.0f).released(0);
  double square = 0.0;
  for (std::size_t j = 0; j < sum.size(); ++j)
    square += std::pow(static_cast<double>(sum[j] - other[j]), 2);
  ASSERT_GT(std::sqrt(square) * sum_grid(1.0), 0.5) << "these examples would not tell";
  const auto outcomes = [&](const Dataset& d, std::uint64_t key) {
    std::vector<double> x;
    OneStep step(data.network, d, key, kSigma);
    for (std::uint64_t t = 0; t < kRuns; ++t) {
      const auto r = step.released(t);
      double towards = 0.0;
      for (std::size_t j = 0; j < r.size(); ++j)
        towards += static_cast<double>(r[j] - other[j]) * static_cast<double>(sum[j] - other[j]);
      x.push_back(towards / square);
    }
    std::ranges::sort(x);
    return x;
  };
  const auto with = outcomes(data.one, 11);
  const auto without = outcomes(data.other, 12);
  const double sigma = kSigma / (std::sqrt(square) * sum_grid(1.0));
  double largest = 0.0;
  for (const double delta : {1e-5, 1e-3, 0.1}) {
    const double promised =
        privacy::Accountant({.releases = {{privacy::Gaussian{sigma}, 1}}}).epsilon(delta).epsilon;
    for (double threshold = -2.0; threshold <= 3.0; threshold += 0.25)
      for (const bool there : {true, false}) {
        const double shown = audit::shown(with, without, threshold, there, delta, kError / 1000.0);
        EXPECT_LE(shown, promised) << delta << " at " << threshold;
        largest = std::fmax(largest, shown);
      }
  }
  if (!kFewRuns) {
    EXPECT_GT(largest, 0.3) << "the test has no power";
  }
}

}  // namespace
}  // namespace cudp
