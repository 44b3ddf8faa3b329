// Sequences of any mechanisms, at the best of all orders: privacy/rdp/curve.hpp.
#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "tests/privacy/golden.hpp"
#include "tests/privacy/oracle.hpp"

namespace cudp::privacy {
namespace {

/// Epsilon by a fine grid over orders, without the search.
double by_grid(const std::vector<Release>& releases, double delta, double most) {
  double best = 1e300;
  for (double c = 0.05; c < most; c *= 1.01)
    best = std::fmin(best, oracle::epsilon_at(1 + c, RdpCurve(releases).at(1 + c), delta));
  return std::fmax(best, 0.0);
}

std::vector<Release> of_everything() {
  return {{Gaussian{30.0}, 10},
          {PoissonGaussian{0.01, 1.2}, 700},
          {BoundedRange{0.05}, 60},
          {Laplace{40.0}, 5},
          {FixedSizeGaussian{50000, 200, 3.0}, 300},
          {GaussianMixture{{0.0, 1.0, 2.0}, {0.98, 0.0199, 0.0001}, 4.0}, 40},
          {PoissonLaplace{0.01, 5.0}, 20},
          {TruncatedPoissonGaussian{50000, 0.004, 400, 2.0}, 100}};
}

TEST(AdaptiveOrders, FindTheBestOfAFineGrid) {
  const std::vector<std::vector<Release>> plans{{{PoissonGaussian{0.01, 1.0}, 2000}},
                                                {{PoissonGaussian{1e-4, 0.6}, 100000}},
                                                {{Gaussian{50.0}, 3}},
                                                {{Laplace{5.0}, 40}},
                                                {{BoundedRange{0.1}, 60}},
                                                of_everything()};
  for (const auto& plan : plans)
    for (const double delta : {1e-2, 1e-5, 1e-10}) {
      const PrivacyBound found = epsilon_by_rdp(plan, delta);
      const double grid = by_grid(plan, delta, 600.0);
      EXPECT_TRUE(found.epsilon <= grid * (1 + 1e-9) + 1e-12) << found.epsilon << " " << grid;
      EXPECT_TRUE(found.epsilon >= grid * (1 - 1e-3)) << found.epsilon << " " << grid;
      // Its own order gives it.
      const std::vector<double> order{found.order};
      EXPECT_TRUE(std::fabs(epsilon_by_rdp(plan, delta, {}, order).epsilon - found.epsilon) <=
                  1e-12 * found.epsilon);
      const double back = delta_by_rdp(plan, found.epsilon).delta;
      EXPECT_TRUE(back <= delta * (1 + 1e-6)) << back << " " << delta;
    }
}

TEST(AdaptiveOrders, ReachSmallEpsilonsAtSmallDeltas) {
  // The default list cannot go below 0.026 at 1e-15.
  const std::vector<Release> little{{PoissonGaussian{1e-5, 10.0}, 10}};
  const double epsilon = epsilon_by_rdp(little, 1e-15).epsilon;
  EXPECT_TRUE(epsilon > 0.0 && epsilon < 0.012) << epsilon;
  const std::vector<Release> less{{Gaussian{1e5}, 1}};
  const double gaussian = epsilon_by_rdp(less, 1e-15).epsilon;
  EXPECT_LE(oracle::gaussian_delta(1e5, gaussian), 1e-15);
  EXPECT_TRUE(gaussian < 1.2e-4) << gaussian;
}

using GoldenCurve = GoldenAccounting;

TEST_F(GoldenCurve, NeverAboveTheListedOrdersNorBelowThePrivacyLossDistribution) {
  for (const auto& c : golden["sampled_gaussian"]["cases"]) {
    const std::vector<Release> releases{
        {PoissonGaussian{c["q"], c["sigma"]}, c["steps"].get<std::uint64_t>()}};
    const double epsilon = epsilon_by_rdp(releases, c["delta"]).epsilon;
    EXPECT_LE(epsilon, c["epsilon_rdp"].get<double>() * (1 + 1e-9));
    EXPECT_GE(epsilon, c["epsilon_pld"].get<double>());
  }
  // Groups, both samplings: where a divergence is finite so is its epsilon, and above the truth.
  for (const auto& c : golden["group_poisson"]) {
    const std::vector<Release> releases{
        {PoissonGaussian{c["q"], c["sigma"]}, c["steps"].get<std::uint64_t>()}};
    const Neighbours neighbours{.relation = NeighbouringRelation::add_or_remove,
                                .group = c["group"]};
    const double epsilon = epsilon_by_rdp(releases, c["delta"], neighbours).epsilon;
    EXPECT_GE(epsilon, c["epsilon"].get<double>() * (1 - 1e-6));
    EXPECT_LE(epsilon, c["epsilon"].get<double>() * 1.3);
  }
  for (const auto& c : golden["group_fixed_size"]) {
    const std::vector<Release> releases{
        {FixedSizeGaussian{c["n"], c["batch"], c["sigma"]}, c["steps"].get<std::uint64_t>()}};
    const Neighbours neighbours{.relation = NeighbouringRelation::add_or_remove,
                                .group = c["group"]};
    const double epsilon = epsilon_by_rdp(releases, c["delta"], neighbours).epsilon;
    EXPECT_GE(epsilon, c["epsilon"].get<double>() * (1 - 1e-6));
    EXPECT_LE(epsilon, c["epsilon"].get<double>() * 1.3);
  }
}

TEST(AdaptiveOrders, EveryGroupOfTheIssueIsFinite) {
  const std::vector<Release> releases{{PoissonGaussian{0.01, 1.0}, 2000}};
  double before = 0.0;
  for (const std::uint64_t k : {1u, 2u, 3u, 9u, 16u, 33u, 64u}) {
    const Neighbours neighbours{.relation = NeighbouringRelation::add_or_remove, .group = k};
    const double epsilon = epsilon_by_rdp(releases, 1e-6, neighbours).epsilon;
    EXPECT_TRUE(std::isfinite(epsilon) && epsilon > before) << k << " " << epsilon;
    before = epsilon;
  }
}

TEST(RdpCurve, MergesWithoutChangingTheSum) {
  std::vector<Release> releases = of_everything();
  const std::vector<Release> twice = [&] {
    std::vector<Release> all = releases;
    all.insert(all.end(), releases.rbegin(), releases.rend());
    return all;
  }();
  for (const double order : {1.5, 4.0, 20.5}) {
    double sum = 0.0;
    for (const Release& release : releases)
      sum += static_cast<double>(release.count) * rdp(release.mechanism, order);
    EXPECT_TRUE(std::fabs(RdpCurve(releases).at(order) / sum - 1) <= 1e-13);
    EXPECT_TRUE(std::fabs(RdpCurve(twice).at(order) / (2 * sum) - 1) <= 1e-13);
  }
}

TEST(RdpCurve, GroupingThousandsOfSigmasIsABoundWithTheLossThatIsStated) {
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  std::vector<Release> releases(5000);
  for (Release& release : releases)
    release = {PoissonGaussian{0.005, 3.0 * std::pow(6.6, uniform(bits))}, 1 + bits() % 3};
  const RdpCurve curve(releases);
  for (const double order : {1.2, 2.0, 7.5, 40.0})
    for (const std::size_t entries : {64u, 256u, 1024u}) {
      const double exact = curve.at(order), grouped = curve.grouped(order, entries);
      // 2 log(6.6) / entries, and a little as the divergence is steeper than 1 / sigma^2.
      EXPECT_TRUE(grouped >= exact * (1 - 1e-13)) << order << " " << entries;
      EXPECT_TRUE(grouped <= exact * (1 + 1.2 * 2 * std::log(6.6) / entries)) << order;
      EXPECT_TRUE(std::fabs(curve.estimate(order, entries) / exact - 1) <= 1.0 / entries);
    }
  EXPECT_EQ(curve.grouped(2.0, 2501), curve.at(2.0));
}

TEST(RdpCurve, FailuresAreTakenFromDelta) {
  const std::vector<Release> releases{{ApproximateDp{0.1, 1e-8}, 10}, {Gaussian{20.0}, 1}};
  const std::vector<Release> pure{{ApproximateDp{0.1, 0.0}, 10}, {Gaussian{20.0}, 1}};
  EXPECT_TRUE(std::fabs(RdpCurve(releases).failure() / 1e-7 - 1) <= 1e-14);
  EXPECT_TRUE(
      std::fabs(epsilon_by_rdp(releases, 1e-6).epsilon / epsilon_by_rdp(pure, 1e-6 - 1e-7).epsilon -
                1) <= 1e-9);
  EXPECT_TRUE(std::fabs(delta_by_rdp(releases, 2.0).delta -
                        (delta_by_rdp(pure, 2.0).delta + 1e-7)) <= 1e-15);
  EXPECT_THROW(epsilon_by_rdp(releases, 1e-7), std::domain_error);
}

TEST(RdpCurve, Refusals) {
  const std::vector<Release> wrong{{Gaussian{0.0}, 1}}, hopeless{{Gaussian{1e-200}, 1}};
  EXPECT_THROW(epsilon_by_rdp(wrong, 1e-5), std::invalid_argument);
  EXPECT_THROW(epsilon_by_rdp(hopeless, 1e-5), std::invalid_argument);
  EXPECT_THROW(epsilon_by_rdp(of_everything(), 0.0), std::invalid_argument);
  EXPECT_THROW(delta_by_rdp(of_everything(), -1.0), std::invalid_argument);
  const std::vector<double> order{0.5};
  EXPECT_THROW(epsilon_by_rdp(of_everything(), 1e-5, {}, order), std::invalid_argument);
  const Neighbours replaced{.relation = NeighbouringRelation::replace_one, .group = 1};
  EXPECT_THROW(epsilon_by_rdp(of_everything(), 1e-5, replaced), std::domain_error);
}

}  // namespace
}  // namespace cudp::privacy
