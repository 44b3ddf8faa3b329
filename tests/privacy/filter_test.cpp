// Budgets under adaptive composition: privacy/filter.hpp and privacy/odometer.hpp.
#include "privacy/filter.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/odometer.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/zcdp.hpp"

namespace cudp::privacy {
namespace {

constexpr double delta = 1e-5;

/// What a method might release next, given what it has seen (`bits`).
Release some_release(std::mt19937_64& bits) {
  const auto uniform = [&] { return std::uniform_real_distribution<>(0.0, 1.0)(bits); };
  const std::uint64_t count = 1 + bits() % 7;
  switch (bits() % 5) {
    case 0:
      return {Gaussian{1.0 + 60.0 * uniform()}, count};
    case 1:
      return {PoissonGaussian{0.001 + 0.05 * uniform(), 0.6 + 2.0 * uniform()}, 10 * count};
    case 2:
      return {BoundedRange{0.5 * uniform()}, count};
    case 3:
      return {Laplace{2.0 + 50.0 * uniform()}, count};
    default:
      return {Gaussian{40.0}, count};
  }
}

std::vector<Budget> budgets() {
  return {renyi_budget(12.0, 1.0, delta), renyi_budget(5.0, 3.0, delta), zcdp_budget(1.0, delta)};
}

/// Returns the largest count of releases that the filter admits, found by bisection.
std::uint64_t max_admitted(const Filter& filter, const Mechanism& mechanism) {
  std::uint64_t low = 0, high = std::uint64_t{1} << 40;
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (filter.admits({mechanism, middle}) ? low : high) = middle;
  }
  return low;
}

TEST(Filter, NeverExceedsInTenThousandAdaptiveRuns) {
  std::mt19937_64 bits(1);
  int refused = 0;
  for (int run = 0; run < 10000; ++run) {
    const Budget budget = budgets()[static_cast<std::size_t>(run) % 3];
    Filter filter(budget);
    double spent = 0.0;  // counted here, without the filter
    for (int stubborn = 0; stubborn < 3;) {
      const Release release = some_release(bits);
      const double price =
          static_cast<double>(release.count) *
          (budget.order == 0.0 ? zcdp_of(release.mechanism) : rdp(release.mechanism, budget.order));
      const bool admitted = filter.admits(release);
      ASSERT_EQ(filter.charge(release), admitted);
      if (admitted) {
        spent += price;
      } else {
        ASSERT_GT(spent + price, filter.limit() * (1 - 1e-12));
        ++stubborn;
        ++refused;
      }
      ASSERT_LE(spent, filter.limit() * (1 + 1e-13));
      ASSERT_TRUE(filter.remaining() >= 0.0 &&
                  std::fabs(filter.remaining() - (1 - spent / filter.limit())) <= 1e-12);
    }
    const double epsilon = budget.order == 0.0 ? epsilon_from_zcdp(spent, delta)
                                               : epsilon_at(budget.order, spent, delta);
    ASSERT_LE(epsilon, budget.epsilon * (1 + 1e-12));
  }
  EXPECT_EQ(refused, 30000);
}

TEST(Filter, WhatIsRefusedChangesNothing) {
  Filter filter(renyi_budget(16.0, 1.0, delta));
  ASSERT_TRUE(filter.charge({Gaussian{10.0}, 3}));
  const Ledger before = filter.ledger();
  const double left = filter.remaining();
  EXPECT_FALSE(filter.admits({Gaussian{0.5}, 1}));
  EXPECT_FALSE(filter.charge({Gaussian{0.5}, 1}));
  EXPECT_FALSE(filter.charge({Gaussian{10.0}, std::uint64_t{1} << 60}));
  EXPECT_FALSE(filter.authorise(0, 1000000, PoissonGaussian{0.1, 1.0}));
  EXPECT_FALSE(filter.charge({ApproximateDp{1e-9, 1e-12}, 1}));  // no failure was set aside
  EXPECT_FALSE(filter.charge({Gaussian{1e-300}, 1}));            // an infinite divergence
  EXPECT_THROW(static_cast<void>(filter.charge({Gaussian{-1.0}, 1})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(filter.authorise(5, 6, Gaussian{1.0})), std::invalid_argument);
  EXPECT_EQ(filter.ledger(), before);
  EXPECT_EQ(filter.remaining(), left);
  EXPECT_TRUE(filter.charge({Gaussian{0.5}, 0}));
  EXPECT_TRUE(filter.charge({PoissonGaussian{0.0, 1e-9}, 5}));
  EXPECT_EQ(filter.remaining(), left);
}

TEST(Filter, TheLastAffordableReleaseIsLetThroughAndNoFurther) {
  for (const Budget& budget : budgets())
    for (const Mechanism& mechanism :
         {Mechanism{Gaussian{30.0}}, Mechanism{BoundedRange{0.01}},
          Mechanism{PoissonGaussian{0.001, 20.0}}, Mechanism{Laplace{100.0}}}) {
      Filter filter(budget);
      const std::uint64_t most = max_admitted(filter, mechanism);
      ASSERT_GT(most, 10u);
      EXPECT_FALSE(filter.admits({mechanism, most + 1}));
      EXPECT_TRUE(filter.charge({mechanism, most}));
      EXPECT_FALSE(filter.charge({mechanism, 1}));
      EXPECT_EQ(max_admitted(filter, mechanism), 0u);
      // All of the budget was of use: one part in `most`.
      EXPECT_LT(filter.remaining(), 1.0001 / static_cast<double>(most));
    }
  EXPECT_TRUE(
      Filter(budgets()[0]).admits({BoundedRange{0.0}, std::numeric_limits<std::uint64_t>::max()}));
}

TEST(Filter, DecidesTheSameAfterACrash) {
  std::mt19937_64 bits(2);
  for (int run = 0; run < 300; ++run) {
    const Budget budget = budgets()[static_cast<std::size_t>(run) % 3];
    Filter steady(budget), crashing(budget);
    std::uint64_t step = 0;
    for (int i = 0; i < 60; ++i) {
      if (bits() % 5 == 0)
        crashing = Filter(Ledger::from_text(crashing.ledger().to_text(), "disk"));
      const Release next = some_release(bits);
      if (bits() % 2 == 0) {
        ASSERT_EQ(steady.charge(next), crashing.charge(next));
      } else if (steady.authorise(step, step + next.count, next.mechanism)) {
        ASSERT_TRUE(crashing.authorise(step, step + next.count, next.mechanism));
        step += next.count;
      } else {
        ASSERT_FALSE(crashing.authorise(step, step + next.count, next.mechanism));
      }
      ASSERT_EQ(steady.remaining(), crashing.remaining());  // to the last bit
      ASSERT_EQ(steady.ledger(), crashing.ledger());
    }
  }
}

TEST(Filter, ReplaysAreFreeAndALostKeyIsNot) {
  Filter filter(renyi_budget(8.0, 2.0, delta));
  const PoissonGaussian step{0.01, 1.0};
  ASSERT_TRUE(filter.authorise(0, 100, step));
  const double left = filter.remaining();
  ASSERT_TRUE(filter.authorise(50, 100, step));
  EXPECT_EQ(filter.remaining(), left);
  filter.fresh_key(50);
  ASSERT_TRUE(filter.authorise(50, 100, step));
  EXPECT_TRUE(std::fabs((1 - filter.remaining()) / (1 - left) - 1.5) <= 1e-9);
}

TEST(Filter, RefusesLedgersThatItDidNotWrite) {
  EXPECT_THROW(Filter{Ledger()}, std::invalid_argument);
  Ledger ledger;
  ledger.limit(renyi_budget(16.0, 1.0, delta));
  ledger.charge(Release{Gaussian{0.1}, 1});
  EXPECT_THROW(Filter{ledger}, std::invalid_argument);
  EXPECT_THROW(Filter{renyi_budget(1.0, 1.0, delta)}, std::invalid_argument);
  EXPECT_THROW(Filter{renyi_budget(2.0, -1.0, delta)}, std::invalid_argument);
  EXPECT_THROW(Filter{renyi_budget(2.0, 1.0, delta)}, std::domain_error);  // log(1/delta) alone
}

TEST(Filter, TheBestOrderOfThePlanLetsAllOfItThrough) {
  const std::vector<Release> plan{{Gaussian{400.0}, 1},
                                  {PoissonGaussian{0.01, 1.1}, 3000},
                                  {Gaussian{50.0}, 20},
                                  {BoundedRange{0.05}, 60}};
  const PrivacyBound planned = epsilon_by_rdp(plan, delta);
  Filter filter(renyi_budget(planned.order, planned.epsilon * (1 + 1e-9), delta));
  for (const Release& release : plan) EXPECT_TRUE(filter.charge(release));
  EXPECT_LT(filter.remaining(), 1e-6);
  EXPECT_GE(epsilon_by_rdp(filter.ledger().releases(), delta).epsilon,
            planned.epsilon * (1 - 1e-9));
}

TEST(Filter, FailuresAddUpToWhatWasSetAside) {
  Filter filter(zcdp_budget(3.0, 1e-5, 1e-6));
  EXPECT_EQ(max_admitted(filter, ApproximateDp{1e-6, 1e-8 * (1 - 1e-9)}), 100u);
  EXPECT_TRUE(filter.charge({ApproximateDp{0.01, 5e-7}, 1}));
  EXPECT_FALSE(filter.charge({ApproximateDp{0.01, 5.1e-7}, 1}));
  EXPECT_TRUE(filter.charge({ApproximateDp{0.01, 4.9e-7}, 1}));
  EXPECT_TRUE(filter.charge({ApproximateDp{0.01, 0.0}, 1}));
  EXPECT_LT(Filter(zcdp_budget(3.0, 1e-5, 9e-6)).limit(), filter.limit());
}

/// A method that looks at the privacy loss itself (no real one can) and picks its next noise so as
/// to do harm: much while it is behind, little once it is ahead. Returns the loss at the end, or
/// the first at which `stop(loss)`.
template <class Charge, class Stop>
double adversary(std::mt19937_64& bits, const Charge& charge, const Stop& stop) {
  std::normal_distribution<> normal;
  double loss = 0.0;
  for (int i = 0; i < 200; ++i) {
    const double sigma = loss < 0.0 ? 3.0 : loss < 0.7 ? 6.0 : 15.0;
    if (!charge(sigma)) break;
    loss += 0.5 / (sigma * sigma) + normal(bits) / sigma;
    if (stop(loss)) break;
  }
  return loss;
}

TEST(Filter, KeepsItsPromiseAgainstAnAdversary) {
  // delta is E[(1 - e^(epsilon - loss))^+], a mean of numbers in [0, 1]. Twenty thousand runs;
  // Hoeffding at 1e-6 allows sqrt(log(1e6) / 40000) = 0.0186 above the promise.
  std::mt19937_64 bits(3);
  for (const Budget& budget : {renyi_budget(4.0, 1.5, 0.05), zcdp_budget(1.0, 0.05)}) {
    double sum = 0.0;
    constexpr int runs = 20000;
    for (int run = 0; run < runs; ++run) {
      Filter filter(budget);
      const double loss = adversary(
          bits,
          [&](double sigma) {
            return filter.charge({Gaussian{sigma}, 1});
          },
          [&](double l) { return l > budget.epsilon + 1.0; });
      sum += std::fmax(0.0, 1.0 - std::exp(budget.epsilon - loss));
    }
    EXPECT_TRUE(sum / runs <= budget.delta + 0.0186) << sum / runs;
    EXPECT_TRUE(sum / runs > 0.001) << "the adversary is too weak to test anything";
  }
}

TEST(Odometer, HoldsAtEveryMomentAtOnce) {
  // The loss may pass epsilon() anywhere along a run in a share of 0.1 of the runs: of 20000,
  // Hoeffding at 1e-6 allows 0.1186. A method that stops as soon as it has passed.
  std::mt19937_64 bits(4);
  constexpr int runs = 20000;
  int passed = 0, naive = 0;
  const std::vector<double> order{6.0};
  for (int run = 0; run < runs; ++run) {
    Odometer odometer(0.1, order);
    std::vector<double> rho{0.0};
    bool beyond = false, beyond_naive = false;
    adversary(
        bits,
        [&](double sigma) {
          odometer.charge({Gaussian{sigma}, 1});
          rho[0] += 0.5 / (sigma * sigma);
          return true;
        },
        [&](double loss) {
          beyond = beyond || loss > odometer.epsilon();
          // The filter's sum without the price of delta: what an odometer must not show.
          beyond_naive = beyond_naive || loss > 6.0 * rho[0];
          return false;
        });
    passed += beyond ? 1 : 0;
    naive += beyond_naive ? 1 : 0;
  }
  EXPECT_LE(passed, 0.1186 * runs);
  EXPECT_GT(naive, 0.1186 * runs) << "the adversary is too weak to test anything";
}

TEST(Odometer, GrowsAndIsReadBackFromALedger) {
  std::mt19937_64 bits(5);
  Odometer odometer(delta);
  Ledger ledger;
  EXPECT_EQ(odometer.epsilon(), 0.0);
  double before = 0.0;
  for (int i = 0; i < 100; ++i) {
    const Release release = some_release(bits);
    odometer.charge(release);
    ledger.charge(release);
    EXPECT_GE(odometer.epsilon(), before);
    before = odometer.epsilon();
    // Never below what would be said if everything had been fixed ahead.
    EXPECT_GE(before, epsilon_by_rdp(ledger.releases(), delta).epsilon);
    EXPECT_LT(before, 3.0 * epsilon_by_rdp(ledger.releases(), delta).epsilon);
  }
  Odometer again(delta);
  again.charge(Ledger::from_text(ledger.to_text(), "disk"));
  EXPECT_TRUE(std::fabs(again.epsilon() / before - 1) <= 1e-12);
  EXPECT_THROW(odometer.charge({ApproximateDp{0.1, 1e-6}, 1}), std::domain_error);
  EXPECT_THROW(odometer.charge({Gaussian{0.0}, 1}), std::invalid_argument);
  EXPECT_EQ(odometer.epsilon(), before);
  EXPECT_THROW(Odometer(0.0), std::invalid_argument);
  const std::vector<double> wrong{2.0, 1.0};
  EXPECT_THROW(Odometer(delta, wrong), std::invalid_argument);
}

}  // namespace
}  // namespace cudp::privacy
