// Several trainings on the same private data: privacy/several_runs.hpp.
#include "privacy/several_runs.hpp"

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/filter.hpp"
#include "privacy/odometer.hpp"
#include "privacy/rdp/mechanism.hpp"

namespace cudp::privacy {
namespace {

constexpr double kDeltaOfAll = 1e-5;

RunSpending planned(Mechanism mechanism, std::uint64_t count) {
  return {.run = PlannedRun{{{std::move(mechanism), count}}}};
}

TEST(SeveralRuns, FixedAheadAreOneRunOfAllTheirReleases) {
  const Release release{PoissonGaussian{0.01, 1.1}, 500};
  const std::vector<RunSpending> runs(3, {.run = PlannedRun{{release}}});
  const double together = Accountant({.releases = {{release.mechanism, 3 * release.count}}})
                              .epsilon(kDeltaOfAll)
                              .epsilon;
  const double found = epsilon_fixed_ahead(runs, kDeltaOfAll);
  EXPECT_GE(found, together * (1.0 - 1e-4));
  EXPECT_LE(found, together * 1.01);
}

/// Random allocation has losses but no divergence: fixed runs compose, others count by a promise.
TEST(SeveralRuns, OfRandomAllocationComposeIfFixedAhead) {
  const Release epochs{AllocatedGaussian{10, 2.0}, 2};
  const std::vector<RunSpending> runs(2, {.run = PlannedRun{{epochs}}});
  const auto of_epochs = [&](std::uint64_t count) {
    return Accountant({.releases = {{epochs.mechanism, count}}}).epsilon(kDeltaOfAll).epsilon;
  };
  EXPECT_NEAR(epsilon_fixed_ahead(runs, kDeltaOfAll), of_epochs(4), 1e-6);
  EXPECT_THROW(epsilon_as_chosen(runs, kDeltaOfAll), std::domain_error);
  EXPECT_FALSE(std::isfinite(cost_at(runs[0], 8.0).divergence));
  EXPECT_TRUE(allocates(runs[0]));
  EXPECT_TRUE(allocates({.run = ChosenRun{{{Gaussian{5.0}, 1}, epochs}}}));
  EXPECT_FALSE(allocates(planned(AllocatedGaussian{1, 2.0}, 3)));
  EXPECT_FALSE(allocates(planned(Gaussian{2.0}, 3)));
  // With a filtered run there is no common bound.
  const std::vector<RunSpending> mixed = {runs[0], {.run = ZcdpFilteredRun{0.1}}};
  EXPECT_THROW(epsilon_fixed_ahead(mixed, kDeltaOfAll), std::domain_error);
  EXPECT_THROW(epsilon_as_chosen(mixed, kDeltaOfAll), std::domain_error);
  // By its promise a run composes with what was chosen by looking at it.
  const std::vector<RunSpending> stated = {{.run = StatedRun{of_epochs(2), 1e-6}},
                                           planned(Gaussian{10.0}, 1)};
  EXPECT_GE(epsilon_as_chosen(stated, kDeltaOfAll), of_epochs(2));
}

TEST(SeveralRuns, AsChosenCostsMoreButLessThanTheirSum) {
  const std::vector<RunSpending> runs(20, planned(PoissonGaussian{0.01, 1.1}, 500));
  const double fixed = epsilon_fixed_ahead(runs, kDeltaOfAll);
  const double chosen = epsilon_as_chosen(runs, kDeltaOfAll);
  const double one = epsilon_fixed_ahead({runs.data(), 1}, kDeltaOfAll);
  EXPECT_GT(chosen, fixed);
  EXPECT_LT(chosen, 20.0 * one);
}

/// What is chosen by looking is worth the odometer's bound, and so is everything before it.
TEST(SeveralRuns, AsChosenIsTheOdometerOnHalfOfDelta) {
  const std::vector<RunSpending> runs = {planned(Gaussian{4.0}, 1), planned(Laplace{20.0}, 3),
                                         planned(PoissonGaussian{0.02, 0.9}, 100)};
  Odometer odometer(0.5 * kDeltaOfAll);
  for (std::size_t n = 1; n <= runs.size(); ++n) {
    odometer.charge(std::get<PlannedRun>(runs[n - 1].run).releases.front());
    EXPECT_NEAR(epsilon_as_chosen({runs.data(), n}, kDeltaOfAll), odometer.epsilon(), 1e-9);
  }
}

/// Whoever stops as soon as a training looks bad for privacy has still lost no more, with
/// probability 1 - delta: the losses of Gaussian runs whose noise follows what was seen.
TEST(SeveralRuns, AsChosenHoldsForRunsThatFollowWhatWasSeen) {
  constexpr double kLoose = 0.02;
  constexpr int kTimes = 20'000;
  std::mt19937_64 bits(3);
  std::normal_distribution<double> normal;
  int above = 0;
  for (int t = 0; t < kTimes; ++t) {
    std::vector<RunSpending> runs;
    double loss = 0.0;
    double seen = 0.0;
    bool was_above = false;
    for (int run = 0; run < 6 && !was_above; ++run) {
      const double sigma = seen > 0.5 ? 2.0 : 5.0;  // a bad sign: look closer
      seen = 1.0 / sigma + normal(bits);            // in units of sigma, with the example there
      loss += seen / sigma - 0.5 / (sigma * sigma);
      runs.push_back(planned(Gaussian{sigma}, 1));
      was_above = loss > epsilon_as_chosen(runs, kLoose);
    }
    if (was_above) ++above;
  }
  EXPECT_LE(above, kLoose * kTimes);
  EXPECT_GT(above, 0);  // the bound is not so loose that nothing could tell
}

TEST(SeveralRuns, AFilterCountsAtItsOrderAndBelow) {
  const Filter filter(renyi_budget(16.0, 1.0, kDeltaOfAll));
  const RunSpending filtered{.run = RenyiFilteredRun{16.0, filter.limit()}};
  const double alone = epsilon_fixed_ahead({&filtered, 1}, kDeltaOfAll);
  EXPECT_NEAR(alone, 1.0, 1e-6);  // 16 is among the orders that are tried
  // At a higher order nothing is known of it.
  std::vector<RunSpending> runs = {filtered, planned(Gaussian{100.0}, 1)};
  const double with = epsilon_fixed_ahead(runs, kDeltaOfAll);
  EXPECT_GT(with, alone);
  EXPECT_LT(with, 1.01);
  runs[0].run = RenyiFilteredRun{1.05, 0.01};
  EXPECT_THROW(epsilon_as_chosen(runs, kDeltaOfAll), std::domain_error);
}

TEST(SeveralRuns, AZcdpFilterIsAGaussianAtEveryOrder) {
  const std::vector<RunSpending> filter = {{.run = ZcdpFilteredRun{0.02}}};
  const std::vector<RunSpending> gaussian = {planned(Gaussian{5.0}, 1)};
  EXPECT_NEAR(epsilon_as_chosen(filter, kDeltaOfAll), epsilon_as_chosen(gaussian, kDeltaOfAll),
              1e-9);
}

/// A training that follows from a noisy count is no plan: it counts by the odometer, and what was
/// planned beside it, too.
TEST(SeveralRuns, AChosenRunCountsByTheOdometerAlone) {
  const std::vector<Release> releases = {{Gaussian{90.0}, 1}, {PoissonGaussian{0.02, 0.9}, 100}};
  std::vector<RunSpending> runs = {{.run = ChosenRun{releases}, .failure = 1e-14},
                                   planned(Gaussian{4.0}, 1)};
  const std::vector<RunSpending> all_planned = {{.run = PlannedRun{releases}, .failure = 1e-14},
                                                planned(Gaussian{4.0}, 1)};
  for (const std::uint64_t group : {1u, 3u}) {
    EXPECT_EQ(epsilon_fixed_ahead(runs, kDeltaOfAll, group),
              epsilon_as_chosen(runs, kDeltaOfAll, group));
    EXPECT_EQ(epsilon_as_chosen(runs, kDeltaOfAll, group),
              epsilon_as_chosen(all_planned, kDeltaOfAll, group));
  }
  EXPECT_GT(epsilon_fixed_ahead(runs, kDeltaOfAll),
            1.1 * epsilon_fixed_ahead(all_planned, kDeltaOfAll));
}

TEST(SeveralRuns, StatedDeltasComeOutOfTheirHalf) {
  const RunSpending stated{.run = StatedRun{0.5, 0.9e-6}};
  std::vector<RunSpending> runs(5, stated);
  const double chosen = epsilon_as_chosen(runs, kDeltaOfAll);
  EXPECT_LE(chosen, 5 * 0.5 + std::log(2.0 / kDeltaOfAll));
  EXPECT_LE(epsilon_fixed_ahead(runs, kDeltaOfAll), 2.5 * (1.0 + 1e-3));
  runs.push_back(stated);
  EXPECT_THROW(epsilon_as_chosen(runs, kDeltaOfAll), std::domain_error);
  EXPECT_NO_THROW(epsilon_fixed_ahead(runs, kDeltaOfAll));
  runs.resize(12, stated);
  EXPECT_THROW(epsilon_fixed_ahead(runs, kDeltaOfAll), std::domain_error);
}

TEST(SeveralRuns, WhatIsForRoundingAddsUp) {
  RunSpending run = planned(Gaussian{4.0}, 1);
  const double without = epsilon_fixed_ahead({&run, 1}, kDeltaOfAll);
  run.failure = 0.4 * kDeltaOfAll;
  EXPECT_NEAR(epsilon_fixed_ahead({&run, 1}, kDeltaOfAll / 0.6), without, 0.2 * without);
  EXPECT_GT(epsilon_fixed_ahead({&run, 1}, kDeltaOfAll), without);
  EXPECT_NO_THROW(epsilon_as_chosen({&run, 1}, kDeltaOfAll));
  run.failure = 0.6 * kDeltaOfAll;
  EXPECT_THROW(epsilon_as_chosen({&run, 1}, kDeltaOfAll), std::domain_error);
}

TEST(Odometer, CountsDeltasOfTheirOwnWithinTheirPart) {
  Odometer odometer(kDeltaOfAll, {}, 3e-6);
  odometer.charge({ApproximateDp{0.2, 1e-6}, 2});
  const double before = odometer.epsilon();
  EXPECT_THROW(odometer.charge({ApproximateDp{0.2, 2e-6}, 1}), std::domain_error);
  EXPECT_EQ(odometer.epsilon(), before);  // it has counted nothing
  Odometer pure(kDeltaOfAll);
  pure.charge({ApproximateDp{0.2, 0.0}, 2});
  EXPECT_EQ(pure.epsilon(), before);
}

}  // namespace
}  // namespace cudp::privacy
