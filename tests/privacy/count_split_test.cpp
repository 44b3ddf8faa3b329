// A noisy count, then a training that is chosen by looking at it: what both show together, found
// exactly on small cases by going through every count and every answer, in both directions.
#include "privacy/count_split.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/calibrate.hpp"
#include "privacy/filter.hpp"
#include "privacy/ledger.hpp"
#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

double upper_tail(double x) { return 0.5 * std::erfc(x / std::sqrt(2.0)); }

/// The law of the count that is published: max(1, n + noise, rounded).
std::vector<double> law_of_count(double n, double sigma) {
  std::vector<double> law;
  for (double y = 1.0; y < n + 12.0 * sigma; ++y)
    law.push_back(upper_tail((y - 0.5 - n) / sigma) - upper_tail((y + 0.5 - n) / sigma));
  law[0] = upper_tail(-(1.5 - n) / sigma);
  return law;
}

/// The largest P(S) - e^x Q(S) of any two laws that are (epsilon, delta)-close: those of four
/// outcomes, of which all others are functions (Kairouz, Oh, Viswanath 2015).
double worst_delta(double epsilon, double delta, double x) {
  const double e = std::exp(epsilon);
  const double one = std::fmax(0.0, e - std::exp(x)) + std::fmax(0.0, 1.0 - std::exp(x) * e);
  return delta + (1.0 - delta) * one / (1.0 + e);
}

/// Delta at x of `steps` yes-or-no answers, each true with odds e^epsilon.
double answers_delta(double epsilon, int steps, double x) {
  const double p = 1.0 / (1.0 + std::exp(-epsilon));
  double delta = 0.0;
  for (int yes = 0; yes <= steps; ++yes) {
    const double choose = std::tgamma(steps + 1.0) / std::tgamma(yes + 1.0) /
                          std::tgamma(static_cast<double>(steps - yes) + 1.0);
    const double with = choose * std::pow(p, yes) * std::pow(1.0 - p, steps - yes);
    const double without = choose * std::pow(1.0 - p, yes) * std::pow(p, steps - yes);
    delta += std::fmax(0.0, with - std::exp(x) * without);
  }
  return delta;
}

/// Delta at `epsilon` of the count and a training that has delta `training(y, x)` at epsilon x when
/// the count came out as y: the count's own privacy loss is used up before.
double together(const std::vector<double>& with, const std::vector<double>& without, double epsilon,
                const std::function<double(std::size_t y, double x)>& training) {
  double delta = 0.0;
  for (std::size_t y = 0; y < std::min(with.size(), without.size()); ++y)
    if (with[y] > 0.0 && without[y] > 0.0)
      delta += with[y] * training(y + 1, epsilon - std::log(with[y] / without[y]));
  for (std::size_t y = without.size(); y < with.size(); ++y) delta += with[y];
  return delta;
}

struct Budgeted {
  double epsilon, delta;
  std::uint64_t group;
};
constexpr Budgeted kSmall[] = {{1.5, 0.05, 1}, {0.7, 0.02, 1}, {3.0, 0.01, 2}, {1.0, 0.001, 3}};

/// Of a set with one unit more and one with it taken away, both ways round.
template <class Check>
void both_ways(const Budgeted& b, const CountSplit& split, const Check& check) {
  for (const double n : {2.0, 9.0, 60.0}) {
    const std::vector<double> more = law_of_count(n + static_cast<double>(b.group), split.sigma);
    const std::vector<double> fewer = law_of_count(n, split.sigma);
    check(more, fewer);
    check(fewer, more);
  }
}

TEST(CountSplit, PartsAddUpToTheBudgetAndTheCountStaysWithinItsOwn) {
  for (const double epsilon : {1e-3, 0.05, 1.0, 3.0, 7.7, 200.0})
    for (const double delta : {1e-15, 1e-7, 1e-5, 0.01})
      for (const std::uint64_t group : {1u, 4u, 1000u}) {
        const CountSplit s = split_for_count(epsilon, delta, group);
        EXPECT_LE(static_cast<long double>(s.count_epsilon) + s.training_epsilon, epsilon);
        EXPECT_LE(static_cast<long double>(s.count_delta) + s.training_delta, delta);
        EXPECT_GT(s.training_epsilon, 0.95 * epsilon);
        EXPECT_GT(s.training_delta, 0.89 * delta);
        const double mu = static_cast<double>(group) / s.sigma;
        EXPECT_LE(gaussian_delta(mu, s.count_epsilon), s.count_delta);
        if (s.sigma > kMinCountNoise) {
          EXPECT_GT(gaussian_delta(mu * (1.0 + 1e-7), s.count_epsilon), s.count_delta);
        }
        EXPECT_EQ(s, split_for_count(epsilon, delta, group));
      }
  EXPECT_EQ(split_for_count(1e6, 0.5, 1).sigma, kMinCountNoise);
  for (const auto& [epsilon, delta] :
       {std::pair{0.0, 1e-5}, {-1.0, 1e-5}, {INFINITY, 1e-5}, {1.0, 0.0}, {1.0, 1.0}})
    EXPECT_THROW(split_for_count(epsilon, delta, 1), std::invalid_argument);
  EXPECT_THROW(split_for_count(1.0, 1e-5, 0), std::invalid_argument);
}

/// Whatever is chosen by looking at the count, as long as it is (epsilon, delta)-DP for every
/// count.
TEST(CountSplit, TheWorstTrainingForEveryCountStaysWithinTheBudget) {
  for (const Budgeted& b : kSmall) {
    const CountSplit split = split_for_count(b.epsilon, b.delta, b.group);
    double worst = 0.0;
    both_ways(b, split, [&](const auto& with, const auto& without) {
      const double delta = together(with, without, b.epsilon, [&](std::size_t, double x) {
        return worst_delta(split.training_epsilon, split.training_delta, x);
      });
      EXPECT_LE(delta, b.delta);
      worst = std::fmax(worst, delta);
    });
    EXPECT_GT(worst, 0.9 * b.delta);  // so there is no room for a larger part
  }
}

/// A training of more steps for more examples, whose answers are as clear as its part allows at
/// every count.
TEST(CountSplit, ATrainingThatIsCalibratedFromTheCountStaysWithinTheBudget) {
  for (const Budgeted& b : kSmall) {
    const CountSplit split = split_for_count(b.epsilon, b.delta, b.group);
    double worst = 0.0;
    const auto steps_of = [](std::size_t y) { return 1 + static_cast<int>(y % 5); };
    std::vector<double> clear(6);
    for (int steps = 1; steps <= 5; ++steps) {
      double low = 0.0, high = 10.0;
      for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        (answers_delta(middle, steps, split.training_epsilon) <= split.training_delta ? low
                                                                                      : high) =
            middle;
      }
      clear[static_cast<std::size_t>(steps)] = low;
    }
    both_ways(b, split, [&](const auto& with, const auto& without) {
      const double delta = together(with, without, b.epsilon, [&](std::size_t y, double x) {
        return answers_delta(clear[static_cast<std::size_t>(steps_of(y))], steps_of(y), x);
      });
      EXPECT_LE(delta, b.delta);
      worst = std::fmax(worst, delta);
    });
    EXPECT_GT(worst, 0.02 * b.delta);
  }
}

/// Two splits that are both right, one of them chosen by looking at the count: nearly 2 delta.
TEST(CountSplit, ASplitThatIsChosenAfterTheCountBoundsNothing) {
  const double epsilon = 1.0, delta = 0.01;
  const double sigma = 6.0;
  const double early = gaussian_epsilon(1.0 / sigma, 0.999 * delta);  // its delta goes to the count
  const double late =
      gaussian_epsilon(1.0 / sigma, 1e-4 * delta);  // its delta goes to the training
  const std::vector<double> with = law_of_count(61.0, sigma), without = law_of_count(60.0, sigma);
  const auto of = [&](double count_epsilon, double count_delta, double x) {
    return worst_delta(epsilon - count_epsilon, delta - count_delta, x);
  };
  const auto fixed_early = together(
      with, without, epsilon, [&](std::size_t, double x) { return of(early, 0.999 * delta, x); });
  const auto fixed_late = together(
      with, without, epsilon, [&](std::size_t, double x) { return of(late, 1e-4 * delta, x); });
  EXPECT_LE(fixed_early, delta);
  EXPECT_LE(fixed_late, delta);
  const auto chosen = together(with, without, epsilon, [&](std::size_t, double x) {
    return x < epsilon - early ? of(early, 0.999 * delta, x) : of(late, 1e-4 * delta, x);
  });
  EXPECT_GT(chosen, 1.5 * delta);
}

/// The trainings of two tables at epsilon 1. Values of dp_accounting 0.6.0 (PLDAccountant, interval
/// 1e-4) for the training's part; beside them what a public count needs.
TEST(CountSplit, CostsAFewPercentOfNoise) {
  const struct {
    double examples, batch;
    std::uint64_t steps;
    double delta;
    double dp_accounting, of_public;
  } kTables[] = {{2.4e6, 512.0, 9376, 1e-7, 0.65460, 0.64865},
                 {20'000.0, 256.0, 1560, 1e-5, 2.13097, 2.05136}};
  for (const auto& t : kTables) {
    const CountSplit s = split_for_count(1.0, t.delta, 1);
    const Release steps{PoissonGaussian{.q = t.batch / t.examples}, t.steps};
    const double sigma = calibrate_sigma({}, steps, s.training_epsilon, s.training_delta);
    EXPECT_NEAR(sigma, t.dp_accounting, 5e-4 * sigma);
    EXPECT_NEAR(calibrate_sigma({}, steps, 1.0, t.delta), t.of_public, 5e-4 * sigma);
    EXPECT_LT(sigma, 1.05 * t.of_public);
  }
}

TEST(CountSplit, IsTheFirstLineOfALedgerAndReadBackExactly) {
  for (const std::uint64_t group : {1u, 7u}) {
    const CountSplit split = split_for_count(1.3, 1e-6, group);
    Ledger ledger;
    ledger.count_first(split);
    const Ledger counted = ledger;
    EXPECT_EQ(ledger.releases(), (std::vector<Release>{{Gaussian{split.sigma}, 1}}));
    EXPECT_TRUE(ledger.holds({Gaussian{split.sigma}, 1}));
    EXPECT_FALSE(ledger.holds({Gaussian{split.sigma}, 2}));
    ledger.limit(renyi_budget(30.0, split.training_epsilon, split.training_delta, 0.0, group));
    ledger.charge({Gaussian{300.0}, 1});
    ledger.authorise(0, 10, PoissonGaussian{0.01, 8.0});
    const std::string text = ledger.to_text();
    EXPECT_EQ(text.substr(text.find('\n') + 1, 6), "count ");
    const Ledger read = Ledger::from_text(text, "a");
    EXPECT_EQ(read, ledger);
    EXPECT_EQ(read.to_text(), text);
    EXPECT_EQ(read.split(), split);
    EXPECT_TRUE(read.continues(counted));
    EXPECT_FALSE(counted.continues(read));
    EXPECT_EQ(read.releases_after_count(),
              (std::vector<Release>{{Gaussian{300.0}, 1}, {PoissonGaussian{0.01, 8.0}, 10}}));
    // The filter pays for what comes after the count, and for nothing else.
    const Filter filter(read);
    Filter same(*read.budget());
    EXPECT_TRUE(same.charge({Gaussian{300.0}, 1}));
    EXPECT_TRUE(same.charge({PoissonGaussian{0.01, 8.0}, 10}));
    EXPECT_EQ(filter.remaining(), same.remaining());
    // Another split is another promise.
    Ledger other;
    other.count_first(split_for_count(1.4, 1e-6, group));
    EXPECT_FALSE(other.continues(counted));
    EXPECT_THROW(ledger.count_first(split), std::invalid_argument);
    EXPECT_THROW(other.count_first(split), std::invalid_argument);
  }
  // One that its noise does not pay for is no entry.
  CountSplit less = split_for_count(1.0, 1e-6, 1);
  less.sigma *= 0.999;
  EXPECT_THROW(Ledger().count_first(less), std::invalid_argument);
  less = split_for_count(1.0, 1e-6, 1);
  less.group = 2;
  EXPECT_THROW(Ledger().count_first(less), std::invalid_argument);
  less = split_for_count(1.0, 1e-6, 1);
  less.training_epsilon *= 1.0 + 1e-12;
  EXPECT_THROW(Ledger().count_first(less), std::invalid_argument);
}

}  // namespace
}  // namespace cudp::privacy
