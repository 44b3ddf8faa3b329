// Groups of k examples, which a unit of privacy is: budgets, filters, several runs, and the law of
// a sampled sum worked out here.
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/filter.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/several_runs.hpp"

namespace cudp::privacy {
namespace {

double binomial(std::uint64_t k, std::uint64_t j, double q) {
  double p = 1.0;
  for (std::uint64_t i = 0; i < j; ++i)
    p *= q * static_cast<double>(k - i) / static_cast<double>(i + 1);
  for (std::uint64_t i = j; i < k; ++i) p *= 1.0 - q;
  return p;
}

/// Of x, the density of the number of k equal rows that are drawn plus noise; k = 0: of noise
/// alone.
double density(double x, std::uint64_t k, double q, double sigma) {
  double sum = 0.0;
  for (std::uint64_t j = 0; j <= k; ++j) {
    const double z = (x - static_cast<double>(j)) / sigma;
    sum += binomial(k, j, q) * std::exp(-0.5 * z * z);
  }
  return sum / (sigma * std::sqrt(2.0 * M_PI));
}

/// The integral of max(0, first - e^epsilon second), by the midpoint rule.
double delta_of(double epsilon, double q, double sigma, std::uint64_t first, std::uint64_t second) {
  constexpr double kStep = 1e-3;
  double sum = 0.0;
  for (double x = -40.0; x < 50.0; x += kStep)
    sum += kStep * std::fmax(0.0, density(x, first, q, sigma) -
                                      std::exp(epsilon) * density(x, second, q, sigma));
  return sum;
}

TEST(Units, TheLawOfASampledSumOfEqualRowsIsWithinTheGroupsBoundInBothDirections) {
  for (const double q : {0.05, 0.4, 1.0})
    for (const std::uint64_t k : {1u, 2u, 4u})
      for (const double epsilon : {0.25, 1.0}) {
        const double sigma = 2.0;
        const Release step{sampled_gaussian_mechanism(q, sigma), 1};
        const double bound = Accountant({.releases = {step}, .group = k}).delta(epsilon).delta;
        const double with = delta_of(epsilon, q, sigma, k, 0);
        const double without = delta_of(epsilon, q, sigma, 0, k);
        EXPECT_LE(std::fmax(with, without), bound * (1.0 + 1e-6)) << q << " " << k;
        EXPECT_GE(std::fmax(with, without), bound * 0.98 - 1e-7) << q << " " << k;
        // A unit of fewer rows is within the same bound.
        EXPECT_LE(delta_of(epsilon, q, sigma, k - 1, 0), bound * (1.0 + 1e-6));
        if (k > 1) {
          const double single = Accountant({.releases = {step}}).delta(epsilon).delta;
          EXPECT_GT(with, single) << "the group factor left out would not show";
        }
      }
}

TEST(Units, AFilterChargesForTheWholeGroupAndItsLedgerSaysSo) {
  for (const double order : {0.0, 8.0}) {
    const Budget budget = renyi_budget(order, 8.0, 1e-5, 0.0, 4);
    Filter filter(budget);
    for (const Mechanism& m :
         std::vector<Mechanism>{Gaussian{20.0}, PoissonGaussian{0.02, 16.0}, BoundedRange{0.05},
                                ApproximateDp{.epsilon = 0.02, .delta = 0.0}}) {
      EXPECT_EQ(filter.cost(m),
                order == 0.0 ? zcdp_of(m, {.group = 4}) : rdp(m, order, {.group = 4}));
      EXPECT_GT(filter.cost(m), order == 0.0 ? 1.5 * zcdp_of(m) : 1.5 * rdp(m, order));
      ASSERT_TRUE(filter.charge({m, 1}));
    }
    const std::string text = filter.ledger().to_text();
    const Ledger read = Ledger::from_text(text, "ledger");
    EXPECT_EQ(read.budget()->group, 4u);
    EXPECT_EQ(read.to_text(), text);
    EXPECT_EQ(Filter(read).remaining(), filter.remaining());
  }
  // Where the group is 1 a ledger is what it always was.
  Ledger single;
  single.limit(renyi_budget(8.0, 3.0, 1e-5));
  Ledger several;
  several.limit(renyi_budget(8.0, 3.0, 1e-5, 0.0, 2));
  EXPECT_NE(single.to_text(), several.to_text());
  EXPECT_EQ(Ledger::from_text(single.to_text(), "ledger").budget()->group, 1u);
  for (const std::uint64_t group : {0u, 1001u}) {
    Ledger ledger;
    EXPECT_THROW(ledger.limit(renyi_budget(8.0, 3.0, 1e-5, 0.0, group)), std::invalid_argument);
  }
}

TEST(Units, RunsOfUnitsAddUpAsUnits) {
  const std::vector<Release> releases = {{PoissonGaussian{0.02, 3.0}, 400}, {Gaussian{80.0}, 1}};
  const std::vector<RunSpending> runs = {{PlannedRun{releases}}};
  const double unit = Accountant({.releases = releases, .group = 3}).epsilon(1e-6).epsilon;
  EXPECT_GE(epsilon_as_chosen(runs, 1e-6, 3), unit);
  EXPECT_NEAR(epsilon_fixed_ahead(runs, 1e-6, 3), unit, 1e-3 * unit);
  EXPECT_GT(epsilon_fixed_ahead(runs, 1e-6, 3), 2.0 * epsilon_fixed_ahead(runs, 1e-6));
  // What is stated is of units already.
  const std::vector<RunSpending> stated = {{StatedRun{0.5, 1e-8}}};
  EXPECT_EQ(epsilon_as_chosen(stated, 1e-6, 3), epsilon_as_chosen(stated, 1e-6, 1));
}

}  // namespace
}  // namespace cudp::privacy
