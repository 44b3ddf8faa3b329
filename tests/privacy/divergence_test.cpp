// The divergence of one step: privacy/rdp/sampled_gaussian.hpp.
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/sampled_gaussian.hpp"
#include "tests/privacy/common.hpp"
#include "tests/privacy/golden.hpp"
#include "tests/privacy/oracle.hpp"

namespace cudp::privacy {
namespace {

std::string sampled_setting(double q, double sigma, double alpha) {
  return "q = " + std::to_string(q) + ", sigma = " + std::to_string(sigma) +
         ", alpha = " + std::to_string(alpha);
}

struct Case {
  double q, sigma, alpha;
};

/// Log-uniform over the ranges a trainer can ask for, as far as the oracle can follow.
std::vector<Case> random_cases(int count, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto log_uniform = [&](double from, double to) {
    return std::exp(std::uniform_real_distribution<>(std::log(from), std::log(to))(bits));
  };
  std::vector<Case> cases;
  while (static_cast<int>(cases.size()) < count) {
    Case c{log_uniform(1e-7, 1.0), log_uniform(0.05, 50.0), 1.0 + log_uniform(0.01, 60.0)};
    if (bits() % 8 == 0) c.sigma = log_uniform(50.0, 1e4);
    if (bits() % 4 == 0) c.alpha = std::ceil(c.alpha);
    if (c.alpha / c.sigma < 60.0) cases.push_back(c);
  }
  return cases;
}

using GoldenDivergence = GoldenAccounting;

TEST_F(GoldenDivergence, MatchesAndIsRightItself) {
  ASSERT_FALSE(golden["rdp_sampled_gaussian"].empty());
  for (const auto& c : golden["rdp_sampled_gaussian"]) {
    const double q = c["q"], sigma = c["sigma"], alpha = c["alpha"], expected = c["rdp"];
    const double found = rdp_sampled_gaussian(q, sigma, alpha);
    EXPECT_TRUE(std::fabs(found / expected - 1) <= 1e-9) << sampled_setting(q, sigma, alpha);
    EXPECT_TRUE(std::fabs(oracle::rdp(q, sigma, alpha) / expected - 1) <= 1e-12)
        << "the reference is off at " << sampled_setting(q, sigma, alpha);
  }
}

TEST(Divergence, JustAboveQuadratureAtRandomPlaces) {
  for (const auto& [q, sigma, alpha] : random_cases(60, 1))
    expect_just_above(rdp_sampled_gaussian(q, sigma, alpha), oracle::rdp(q, sigma, alpha), 2e-11,
                      sampled_setting(q, sigma, alpha));
}

TEST(Divergence, RoundingIsPaidFor) {
  // Places where the sums alone come out 3e-15 to 4e-14 below the truth: many large exponents.
  const std::vector<Case> cases{{2.6079052783005593e-10, 0.65410749270172641, 18.387939824908536},
                                {0.00033444461943876567, 2.8846017833880282, 132.93109751884757},
                                {2.0503787818117499e-10, 4.5496256852571495, 182.0},
                                {5.7497430722292661e-06, 1.9611122648721566, 87.0}};
  for (const auto& [q, sigma, alpha] : cases)
    expect_just_above(rdp_sampled_gaussian(q, sigma, alpha), oracle::rdp(q, sigma, alpha), 1e-10,
                      sampled_setting(q, sigma, alpha));
}

TEST(Divergence, BoundsTheOtherDirectionToo) {
  for (const auto& [q, sigma, alpha] : random_cases(20, 2)) {
    const double reverse = oracle::rdp_reverse(q, sigma, alpha);
    EXPECT_TRUE(rdp_sampled_gaussian(q, sigma, alpha) >= reverse)
        << sampled_setting(q, sigma, alpha);
  }
}

TEST(Divergence, TinyValuesKeepTheirDigits) {
  // 1 + the excess rounds to 1 here: the leading term is alpha q^2 (e^(1/sigma^2) - 1) / 2.
  for (const double alpha : {1.01, 1.5, 2.0, 7.3, 64.0, 500.5}) {
    const double q = 1e-7, sigma = 1e4;
    expect_just_above(rdp_sampled_gaussian(q, sigma, alpha),
                      0.5 * alpha * q * q * std::expm1(1.0 / (sigma * sigma)), 1e-9,
                      sampled_setting(q, sigma, alpha));
  }
}

TEST(Divergence, PlainGaussianAtFullRateAndNothingAtNone) {
  for (const double sigma : {0.05, 1.3, 1e4})
    for (const double alpha : {1.01, 7.0, 1024.0}) {
      expect_just_above(rdp_sampled_gaussian(1.0, sigma, alpha), alpha / (2 * sigma * sigma), 1e-14,
                        sampled_setting(1.0, sigma, alpha));
      EXPECT_EQ(rdp_sampled_gaussian(0.0, sigma, alpha), 0.0);
    }
}

TEST(Divergence, GrowsWithRateAndOrderAndFallsWithNoise) {
  // The arguments are 1e-3 apart, far more than what rounding adds.
  std::mt19937_64 bits(3);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  for (int i = 0; i < 3000; ++i) {
    const double q = std::pow(10.0, -7.0 * uniform(bits)) / 1.001;
    const double sigma = std::pow(10.0, -1.3 + 5.3 * uniform(bits));
    const double alpha = 1.0 + std::pow(10.0, -2.0 + 4.0 * uniform(bits));
    const double here = rdp_sampled_gaussian(q, sigma, alpha);
    ASSERT_TRUE(here > 0.0) << sampled_setting(q, sigma, alpha);
    EXPECT_TRUE(rdp_sampled_gaussian(q * 1.001, sigma, alpha) >= here)
        << sampled_setting(q, sigma, alpha);
    EXPECT_TRUE(rdp_sampled_gaussian(q, sigma / 1.001, alpha) >= here)
        << sampled_setting(q, sigma, alpha);
    EXPECT_TRUE(rdp_sampled_gaussian(q, sigma, alpha * 1.001) >= here)
        << sampled_setting(q, sigma, alpha);
    EXPECT_TRUE(here <= alpha / (2 * sigma * sigma) * (1 + 1e-14))
        << sampled_setting(q, sigma, alpha);
  }
}

TEST(Divergence, FractionalOrdersLieOnAConvexCurve) {
  // (alpha - 1) D_alpha is convex: below the chord between integer orders, above its neighbours'
  // continued chords.
  for (const double q : {1e-5, 0.01, 0.6})
    for (const double sigma : {0.1, 0.7, 3.0, 200.0})
      for (int n = 2; n < 40; n += 3) {
        const auto curve = [&](double alpha) {
          return (alpha - 1) * rdp_sampled_gaussian(q, sigma, alpha);
        };
        const double left = curve(n), right = curve(n + 1), further = curve(n + 2);
        const double middle = curve(n + 0.5);
        EXPECT_TRUE(middle <= 0.5 * (left + right) * (1 + 1e-10)) << sampled_setting(q, sigma, n);
        EXPECT_TRUE(middle >= (1.5 * right - 0.5 * further) * (1 - 1e-9))
            << sampled_setting(q, sigma, n);
      }
}

TEST(Divergence, WhereTheIntegralIsTooLongTheChordTakesOver) {
  // alpha / sigma^2 = 1e6: more nodes than are spent on one value.
  const double q = 1e-7, sigma = 0.01, alpha = 100.5;
  // (And where the chord exceeds the plain Gaussian, that does.)
  expect_just_above(rdp_sampled_gaussian(0.01, sigma, alpha), alpha / (2 * sigma * sigma), 1e-14,
                    sampled_setting(0.01, sigma, alpha));
  const double left = 99 * rdp_sampled_gaussian(q, sigma, 100);
  const double right = 100 * rdp_sampled_gaussian(q, sigma, 101);
  const double found = rdp_sampled_gaussian(q, sigma, alpha);
  expect_just_above(found, 0.5 * (left + right) / (alpha - 1), 1e-10,
                    sampled_setting(q, sigma, alpha));
  // The leading term, q^alpha e^(alpha (alpha - 1) / (2 sigma^2)), is all there is.
  const double truth = 0.5 * alpha / (sigma * sigma) + alpha / (alpha - 1) * std::log(q);
  expect_just_above(found, truth, 1e-4, sampled_setting(q, sigma, alpha));
}

TEST(Divergence, ExtremesAreFiniteAndPositiveOrInfiniteNeverZeroOrNan) {
  for (const double q : {1e-300, 1e-100, 1e-12, 1e-7, 0.5, 1.0 - 1e-16, 1.0})
    for (const double sigma : {1e-300, 1e-160, 1e-9, 0.05, 1.0, 1e4, 1e30, 1e300})
      for (const double alpha : {1.0 + 1e-12, 1.01, 1.5, 2.0, 3.7, 64.0, 1024.0, 1500.25}) {
        const double rdp = rdp_sampled_gaussian(q, sigma, alpha);
        EXPECT_TRUE(rdp > 0.0) << sampled_setting(q, sigma, alpha);
        EXPECT_TRUE(rdp < infinity || sigma < 1e-150) << sampled_setting(q, sigma, alpha);
      }
}

TEST(Divergence, Refusals) {
  EXPECT_THROW(rdp_sampled_gaussian(-0.1, 1.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(1.1, 1.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(nan, 1.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, 0.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, -1.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, infinity, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, nan, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, 1.0, 1.0), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, 1.0, infinity), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, 1.0, nan), std::invalid_argument);
  EXPECT_THROW(rdp_sampled_gaussian(0.1, 1.0, 1e7), std::invalid_argument);
}

}  // namespace
}  // namespace cudp::privacy
