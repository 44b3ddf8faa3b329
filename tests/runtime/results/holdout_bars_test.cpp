// Bars around what noisy counts of held-out rows say cover the population's value as often as they
// claim: rows drawn anew and noise drawn anew, 400 times for each setting.
#include "runtime/results/holdout_bars.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cudp {
namespace {

constexpr int kRuns = 400;
constexpr double kMin = 0.92 * kRuns;
constexpr double kMax = 0.98 * kRuns;

using Truth = std::map<std::string, double>;

/// Of shares of the population [label, predicted].
Truth truth_of(const std::vector<double>& p) {
  const double no = p[0] + p[1], yes = p[2] + p[3];
  return {{"accuracy", p[0] + p[3]},
          {"balanced accuracy", 0.5 * (p[0] / no + p[3] / yes)},
          {"recall of class 0", p[0] / no},
          {"recall of class 1", p[3] / yes},
          {"precision of class 0", p[0] / (p[0] + p[2])},
          {"precision of class 1", p[3] / (p[1] + p[3])}};
}

struct Setting {
  double positives, noise;
  int rows;
};

TEST(HoldoutBars, OfAConfusionMatrixCoverThePopulation) {
  for (const Setting s : {Setting{0.03, 2.0, 4'000}, Setting{0.03, 12.0, 20'000},
                          Setting{0.5, 2.0, 4'000}, Setting{0.5, 20.0, 4'000}}) {
    const std::vector<double> p = {(1.0 - s.positives) * 0.85, (1.0 - s.positives) * 0.15,
                                   s.positives * 0.3, s.positives * 0.7};
    const Truth truth = truth_of(p);
    std::mt19937_64 random(7);
    std::discrete_distribution<std::size_t> row(p.begin(), p.end());
    std::normal_distribution<double> noise(0.0, s.noise);
    std::map<std::string, int> covered;
    for (int run = 0; run < kRuns; ++run) {
      NoisyConfusion c{.classes = 2, .noisy = std::vector<double>(4), .noise_std = s.noise};
      for (int i = 0; i < s.rows; ++i) c.noisy[row(random)] += 1.0;
      for (double& x : c.noisy) x += std::round(noise(random));
      for (const ErrorBar& bar : error_bars(c)) {
        EXPECT_LE(bar.low, bar.value);
        EXPECT_LE(bar.value, bar.high);
        const double value = truth.at(bar.name);
        covered[bar.name] += bar.low <= value && value <= bar.high ? 1 : 0;
      }
    }
    for (const auto& [name, count] : covered) {
      EXPECT_GE(count, kMin) << name << " at " << s.positives << ", noise " << s.noise;
      EXPECT_LE(count, kMax) << name << " at " << s.positives << ", noise " << s.noise;
    }
  }
}

TEST(HoldoutBars, OfARegressionCoverThePopulation) {
  constexpr double kWidth = 60.0;
  for (const bool heavy : {false, true})
    for (const Setting s : {Setting{0.0, 2.0, 1'000}, Setting{0.0, 8.0, 4'000}}) {
      std::mt19937_64 random(8);
      std::normal_distribution<double> normal(0.0, 5.0);
      std::exponential_distribution<double> exponential(0.2);
      const auto error = [&] {
        return std::min(kWidth, heavy ? exponential(random) : std::fabs(normal(random)));
      };
      double square = 0.0, distance = 0.0;
      constexpr int kPopulation = 2'000'000;
      for (int i = 0; i < kPopulation; ++i) {
        const double e = error();
        square += e * e / kPopulation;
        distance += e / kPopulation;
      }
      std::normal_distribution<double> noise(0.0, s.noise);
      int rmse = 0, mae = 0;
      for (int run = 0; run < kRuns; ++run) {
        NoisyErrors sums{.width = kWidth, .noise_std = s.noise};
        for (int i = 0; i < s.rows; ++i) {
          const double e = error() / kWidth;
          sums.rows += 1.0;
          sums.distances += e;
          sums.squares += e * e;
          sums.fourth_powers += e * e * e * e;
        }
        for (double* const x : {&sums.rows, &sums.distances, &sums.squares, &sums.fourth_powers})
          *x += noise(random);
        const std::vector<ErrorBar> bars = error_bars(sums);
        rmse += bars[0].low <= std::sqrt(square) && std::sqrt(square) <= bars[0].high ? 1 : 0;
        mae += bars[1].low <= distance && distance <= bars[1].high ? 1 : 0;
      }
      for (const int count : {rmse, mae}) {
        EXPECT_GE(count, kMin) << heavy << " " << s.noise;
        EXPECT_LE(count, kMax) << heavy << " " << s.noise;
      }
    }
}

/// Rows of one unit may be alike: as if there were so many times fewer.
TEST(HoldoutBars, OfUnitsAreAsWideAsForFewerRows) {
  const NoisyConfusion rows{.classes = 2, .noisy = {800, 200, 300, 700}, .noise_std = 0.0};
  NoisyConfusion units = rows;
  units.unit_rows = 4;
  const ErrorBar a = error_bars(rows).at(0), b = error_bars(units).at(0);
  EXPECT_NEAR((b.high - b.low) / (a.high - a.low), 2.0, 0.02);
  EXPECT_EQ(a.value, 0.75);
}

/// Where noise leaves nothing, they say so.
TEST(HoldoutBars, OfNothingSayNothing) {
  for (const ErrorBar& bar :
       error_bars(NoisyConfusion{.classes = 2, .noisy = {-3, 1, 0, -2}, .noise_std = 5.0})) {
    EXPECT_EQ(bar.low, 0.0) << bar.name;
    EXPECT_EQ(bar.high, 1.0) << bar.name;
  }
  for (const ErrorBar& bar : error_bars(NoisyErrors{.rows = -1.0, .width = 7.0, .noise_std = 5.0}))
    EXPECT_EQ(bar.high, 7.0) << bar.name;
}

}  // namespace
}  // namespace cudp
