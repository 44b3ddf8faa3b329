// A budget for several trainings: privacy/run_filter.hpp.
#include "privacy/run_filter.hpp"

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/calibrate.hpp"
#include "privacy/filter.hpp"
#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

constexpr double kRunDelta = 1e-5;

/// A training of DP-SGD with epsilon 1 at delta 1e-5.
RunSpending epsilon_one() {
  const std::uint64_t steps = std::uint64_t{40} * 118;
  const double q = 512.0 / 60000.0;
  const double sigma = calibrate_sigma({}, {PoissonGaussian{q, 1.0}, steps}, 1.0, kRunDelta);
  return {.run = PlannedRun{{{PoissonGaussian{q, sigma}, steps}}}};
}

/// Number of these runs that a budget admits.
int admitted(double epsilon, const RunSpending& run) {
  RunFilter filter(budget_for_runs(epsilon, kRunDelta));
  const RunCost cost = filter.cost({run}, 1);
  int count = 0;
  while (count < 100 && filter.charge(cost, "run")) ++count;
  return count;
}

/// The numbers that runtime/python/README.md states.
TEST(RunFilter, TwoRunsOfEpsilonOneNeed1p66) {
  const RunSpending run = epsilon_one();
  EXPECT_EQ(admitted(1.65, run), 1);
  EXPECT_EQ(admitted(1.66, run), 2);
  EXPECT_EQ(admitted(3.0, run), 5);
}

TEST(RunFilter, AdmitsWhatAFilterOfItsOrderAdmits) {
  const Budget budget = budget_for_runs(2.0, kRunDelta);
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    RunFilter runs(budget);
    Filter releases(budget);
    for (int i = 0; i < 30; ++i) {
      const Release release{Gaussian{5.0 + static_cast<double>(random() % 1000) / 50.0},
                            1 + random() % 5};
      const bool fits = releases.charge(release);
      EXPECT_EQ(runs.charge(runs.cost({{.run = PlannedRun{{release}}}}, 1), "").has_value(), fits);
    }
    EXPECT_NEAR(runs.remaining(), releases.remaining(), 1e-9);
  }
}

TEST(RunFilter, ADeltaOfARunIsPaidFromHalfOfTheBudgets) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  const auto stated = [&](double delta) {
    return filter.cost({{.run = StatedRun{0.1, delta}}}, 1);
  };
  EXPECT_FALSE(filter.charge(stated(0.6 * kRunDelta), ""));
  EXPECT_TRUE(filter.charge(stated(0.4 * kRunDelta), ""));
  EXPECT_FALSE(filter.charge(stated(0.2 * kRunDelta), ""));
  EXPECT_NEAR(filter.delta_left(), 0.1 * kRunDelta, 1e-12);
}

TEST(RunFilter, ARunWithoutABoundAtTheOrderDoesNotFit) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  EXPECT_FALSE(filter.charge(filter.cost({{.run = RenyiFilteredRun{1.5, 0.001}}}, 1), ""));
  EXPECT_EQ(filter.remaining(), 1.0);
  EXPECT_THROW((void)filter.charge({.divergence = std::nan("")}, ""), std::invalid_argument);
  EXPECT_THROW((void)filter.charge({.divergence = -1.0}, ""), std::invalid_argument);
}

TEST(RunFilter, ItsRestIsTheEpsilonOfAGaussianThatFits) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  const auto gaussian = [&](double epsilon) {
    const double mu = gaussian_mu(epsilon, kRunDelta);
    return filter.cost({{.run = PlannedRun{{{Gaussian{1.0 / mu}, 1}}}}}, 1);
  };
  ASSERT_TRUE(filter.charge(gaussian(1.0), ""));
  const double rest = filter.epsilon_left(kRunDelta);
  EXPECT_GT(rest, 1.5);
  EXPECT_FALSE(filter.charge(gaussian(1.001 * rest), ""));
  EXPECT_TRUE(filter.charge(gaussian(0.999 * rest), ""));
  EXPECT_LT(filter.epsilon_left(kRunDelta), 0.15);
}

TEST(RunFilter, AnEstimateIsReplacedByThePlan) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  const double limit = Filter(filter.budget()).limit();
  const auto first = filter.charge({.divergence = 0.5 * limit}, "first");
  ASSERT_TRUE(first);
  ASSERT_TRUE(filter.charge({.divergence = 0.3 * limit}, "second"));
  EXPECT_FALSE(filter.settle(*first, {.divergence = 0.71 * limit}));
  EXPECT_NEAR(filter.remaining(), 0.2, 1e-9);
  EXPECT_TRUE(filter.settle(*first, {.divergence = 0.69 * limit}));
  EXPECT_NEAR(filter.remaining(), 0.01, 1e-9);
  EXPECT_TRUE(filter.settle(*first, {.divergence = 0.4 * limit}));
  EXPECT_NEAR(filter.remaining(), 0.3, 1e-9);
  EXPECT_EQ(filter.runs().size(), 2u);
}

TEST(RunFilter, IsForOneUnitOfPrivacy) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  filter.protect("each row");
  filter.protect("each row");
  EXPECT_THROW(filter.protect("up to 3 rows with one text in who"), std::invalid_argument);
}

TEST(RunFilter, TextIsReadBackAndDamageIsNoticed) {
  RunFilter filter(budget_for_runs(3.0, kRunDelta));
  filter.protect("up to 3 rows with one text in a\nb %");
  ASSERT_TRUE(filter.charge(filter.cost({{.run = PlannedRun{{{Gaussian{20.0}, 7}}}}}, 3),
                            "training of m\xc3\xbcller # 1 %41"));
  ASSERT_TRUE(filter.charge(filter.cost({{.run = StatedRun{0.1, 1e-7}}}, 1), ""));
  const std::string text = filter.to_text();
  EXPECT_TRUE(RunFilter::from_text(text, "b") == filter);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THROW((void)RunFilter::from_text(damaged, "b"), std::logic_error) << i;
    EXPECT_THROW((void)RunFilter::from_text(text.substr(0, i), "b"), std::logic_error) << i;
  }
  EXPECT_THROW((void)RunFilter::from_text(text + text, "b"), std::invalid_argument);
}

TEST(RunFilter, RefusesImpossibleBudgets) {
  EXPECT_THROW((void)budget_for_runs(0.0, kRunDelta), std::invalid_argument);
  EXPECT_THROW((void)budget_for_runs(1.0, 1.0), std::invalid_argument);
  EXPECT_THROW(RunFilter(zcdp_budget(1.0, kRunDelta)), std::invalid_argument);
  for (const double epsilon : {1e-3, 0.1, 1.0, 10.0, 100.0})
    for (const double delta : {1e-12, 1e-5})
      EXPECT_GT(RunFilter(budget_for_runs(epsilon, delta)).epsilon_left(delta), 0.3 * epsilon)
          << epsilon << " " << delta;
}

}  // namespace
}  // namespace cudp::privacy
