// Inverse problems by Renyi divergences at listed orders: privacy/calibrate.hpp, to within 1e-8.
#include "privacy/calibrate.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/math/boundary.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "tests/privacy/common.hpp"
#include "tests/privacy/golden.hpp"
#include "tests/privacy/oracle.hpp"

namespace cudp::privacy {
namespace {

AccountantOptions by_rdp(const std::vector<double>& orders = default_list) {
  return {.kind = AccountantKind::rdp, .orders = orders};
}

PrivacyBound bound(const std::vector<Release>& releases, double delta,
                   const std::vector<double>& orders = default_list) {
  return Accountant({.releases = releases}, by_rdp(orders)).epsilon(delta);
}

double epsilon(double q, double sigma, std::uint64_t steps, double delta) {
  return bound({{PoissonGaussian{q, sigma}, steps}}, delta).epsilon;
}

double sigma_for(double target, double delta, double q, std::uint64_t steps,
                 const std::vector<Release>& before = {},
                 const std::vector<double>& orders = default_list) {
  return calibrate_sigma({.releases = before}, {PoissonGaussian{q, 1.0}, steps}, target, delta,
                         by_rdp(orders));
}

double rate_for(double target, double delta, double sigma, std::uint64_t steps,
                const std::vector<Release>& before = {}) {
  return calibrate_rate({.releases = before}, {PoissonGaussian{0.0, sigma}, steps}, target, delta,
                        by_rdp());
}

std::uint64_t steps_for(double target, double delta, double q, double sigma,
                        const std::vector<Release>& before = {}) {
  return calibrate_steps({.releases = before}, {PoissonGaussian{q, sigma}, 0}, target, delta,
                         by_rdp());
}

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::domain_error& refused) {
    return refused.what();
  }
  return "";
}

using GoldenCalibration = GoldenAccounting;

TEST_F(GoldenCalibration, SigmaAgreesWhereTheReferenceIsRight) {
  ASSERT_EQ(golden["calibrate_sigma"].size(), 4u);
  for (const auto& c : golden["calibrate_sigma"]) {
    const double target = c["epsilon"], delta = c["delta"], q = c["q"], reference = c["sigma_rdp"];
    const std::uint64_t steps = c["steps"];
    const double sigma = sigma_for(target, delta, q, steps);
    EXPECT_LE(epsilon(q, sigma, steps, delta), target);
    EXPECT_GT(epsilon(q, sigma * (1 - 1e-8), steps, delta), target);
    EXPECT_GT(sigma, c["sigma_pld"].get<double>());
    // All four reference sigmas are too large, by 1.8e-6 to 7.6e-5, for two reasons: their
    // divergence of fractional orders is (rdp_without_signs), and their search stopped before the
    // budget was used up. With that divergence their epsilon is 1e-6 to 1e-5 below the target.
    EXPECT_LT(sigma, reference);
    EXPECT_GT(sigma, reference * (1 - 1e-4));
    double of_reference = infinity;
    const std::vector<Release> releases{{sampled_gaussian_mechanism(q, reference), steps}};
    const double order = bound(releases, delta).order;
    for (const double alpha : default_orders()) {
      if (std::fabs(alpha - order) > 0.35) continue;
      of_reference =
          std::fmin(of_reference,
                    oracle::epsilon_by(releases, delta, alpha, [](double rate, double s, double a) {
                      return a == std::floor(a) ? rdp_sampled_gaussian(rate, s, a)
                                                : oracle::rdp_without_signs(rate, s, a);
                    }));
    }
    EXPECT_TRUE(of_reference <= target && of_reference >= target * (1 - 1e-5)) << of_reference;
  }
}

TEST(SafeBoundary, EndsOnTheSafeSideWithinItsTolerance) {
  int calls = 0;
  const auto judge = [&](const auto& f, double bad, double good, double zero) {
    const double x = safe_boundary(
        [&](double at) {
          ++calls;
          return f(at);
        },
        bad, good, 1e-9);
    EXPECT_LE(f(x), 0.0) << zero;
    EXPECT_TRUE(std::fabs(x - zero) <= 1e-9) << x << " instead of " << zero;
  };
  judge([](double x) { return std::exp(-x) - 0.5; }, -3.0, 9.0, std::log(2.0));
  judge([](double x) { return x - 1e-3; }, 7.0, -7.0, 1e-3);
  judge([](double x) { return std::cbrt(0.3 - x); }, -1.0, 1.0, 0.3);
  EXPECT_LT(calls, 3 * 40);
  judge([](double x) { return x < 0.7 ? 1e300 : -1.0; }, -1.0, 1.0, 0.7);  // a jump
  judge([](double x) { return x < 0.7 ? infinity : 0.0; }, -1.0, 1.0, 0.7);
}

TEST(Calibrate, SigmaIsSafeAndTightOrRefusedAtExtremes) {
  int refused = 0, found = 0;
  for (const double target : {0.01, 0.3, 3.0, 100.0})
    for (const double delta : {1e-15, 1e-5, 1e-2})
      for (const double q : {1e-7, 1e-3, 0.1, 1.0})
        for (const std::uint64_t steps : {1u, 3000u, 10'000'000u}) {
          double sigma = 0.0;
          const std::string why = refusal([&] { sigma = sigma_for(target, delta, q, steps); });
          if (!why.empty()) {
            // Only where the price of the conversion alone is more than the budget.
            EXPECT_GT(epsilon(1e-90, 1e20, 1, delta), target);
            EXPECT_NE(why.find("0.01 at delta 1e-15"), std::string::npos) << why;
            ++refused;
            continue;
          }
          ++found;
          EXPECT_LE(epsilon(q, sigma, steps, delta), target) << q << " " << steps;
          EXPECT_GT(epsilon(q, sigma * (1 - 1e-6), steps, delta), target) << q << " " << steps;
        }
  EXPECT_EQ(refused, 12);
  EXPECT_EQ(found, 4 * 3 * 4 * 3 - 12);
}

TEST(Calibrate, LargerOrdersReachWhatTheDefaultOnesDoNot) {
  EXPECT_THROW(sigma_for(0.01, 1e-15, 0.01, 10), std::domain_error);
  const std::vector<double> orders{4096.0, 8192.0};
  const double sigma = sigma_for(0.01, 1e-15, 0.01, 10, {}, orders);
  EXPECT_LE(bound({{PoissonGaussian{0.01, sigma}, 10}}, 1e-15, orders).epsilon, 0.01);
}

TEST(Calibrate, WhatWasReleasedBeforeCounts) {
  const std::vector<Release> before{{Gaussian{20.0}, 10}, {PoissonGaussian{0.02, 1.5}, 200}};
  const double sigma = sigma_for(2.0, 1e-6, 0.01, 1000, before);
  EXPECT_GT(sigma, sigma_for(2.0, 1e-6, 0.01, 1000) * 1.01);
  std::vector<Release> all = before;
  all.push_back({PoissonGaussian{0.01, sigma}, 1000});
  EXPECT_LE(bound(all, 1e-6).epsilon, 2.0);
  all.back().mechanism = PoissonGaussian{0.01, sigma * (1 - 1e-6)};
  EXPECT_GT(bound(all, 1e-6).epsilon, 2.0);
  EXPECT_LT(steps_for(2.0, 1e-6, 0.01, 1.2, before), steps_for(2.0, 1e-6, 0.01, 1.2));
  EXPECT_LT(rate_for(2.0, 1e-6, 1.2, 1000, before), rate_for(2.0, 1e-6, 1.2, 1000));

  const double spent = bound(before, 1e-6).epsilon;
  for (const double target : {spent, 0.5 * spent}) {
    EXPECT_NE(refusal([&] { sigma_for(target, 1e-6, 0.01, 1000, before); }).find("already spent"),
              std::string::npos);
    EXPECT_THROW(steps_for(target, 1e-6, 0.01, 1.0, before), std::domain_error);
    EXPECT_THROW(rate_for(target, 1e-6, 1.0, 1000, before), std::domain_error);
  }
  EXPECT_LE(spent, sigma_for(spent * 1.0001, 1e-6, 0.01, 1000, before));
}

TEST(Calibrate, OneMoreStepWouldExceed) {
  for (const double target : {0.1, 1.0, 8.0, 100.0})
    for (const double q : {1e-5, 0.01, 0.5, 1.0})
      for (const double sigma : {0.7, 1.1, 4.0, 100.0}) {
        std::uint64_t steps = 0;
        if (!refusal([&] { steps = steps_for(target, 1e-6, q, sigma); }).empty()) {
          EXPECT_GT(epsilon(q, sigma, 1, 1e-6), target);
          continue;
        }
        EXPECT_LE(epsilon(q, sigma, steps, 1e-6), target) << q << " " << sigma;
        if (steps == std::uint64_t{1} << 40) continue;  // the cap
        // (One in 1e11: the last step of a trillion is within rounding.)
        const std::uint64_t more = steps + 1 + steps / 100'000'000'000u;
        EXPECT_GT(epsilon(q, sigma, more, 1e-6), target) << q << " " << sigma;
      }
}

TEST(Calibrate, StepsOfAnAlmostFreeMechanismAreCapped) {
  EXPECT_EQ(steps_for(10.0, 1e-6, 1e-15, 1e4), std::uint64_t{1} << 40);
}

TEST(Calibrate, RateIsSafeAndTight) {
  for (const double target : {0.1, 1.0, 8.0, 100.0})
    for (const std::uint64_t steps : {1u, 3000u, 10'000'000u})
      for (const double sigma : {0.7, 1.1, 4.0, 100.0}) {
        const double q = rate_for(target, 1e-6, sigma, steps);
        ASSERT_TRUE(q > 0.0 && q <= 1.0);
        EXPECT_LE(epsilon(q, sigma, steps, 1e-6), target) << steps << " " << sigma;
        if (q < 1.0) {
          EXPECT_GT(epsilon(std::fmin(1.0, q * (1 + 1e-6)), sigma, steps, 1e-6), target);
        }
      }
  EXPECT_EQ(rate_for(10.0, 1e-6, 5.0, 1), 1.0);
}

TEST(Calibrate, Refusals) {
  for (const double bad : {0.0, -1.0, nan, infinity, 1e7}) {
    EXPECT_THROW(sigma_for(bad, 1e-5, 0.01, 10), std::invalid_argument);
    EXPECT_THROW(steps_for(bad, 1e-5, 0.01, 1.0), std::invalid_argument);
    EXPECT_THROW(rate_for(bad, 1e-5, 1.0, 10), std::invalid_argument);
    EXPECT_THROW(sigma_for(1.0, bad, 0.01, 10), std::invalid_argument);
    EXPECT_THROW(sigma_for(1.0, 1e-5, bad, 10), std::invalid_argument);
    EXPECT_THROW(steps_for(1.0, 1e-5, bad, 1.0), std::invalid_argument);
  }
  for (const double bad : {0.0, -1.0, nan, infinity}) {
    EXPECT_THROW(steps_for(1.0, 1e-5, 0.01, bad), std::invalid_argument);
    EXPECT_THROW(rate_for(1.0, 1e-5, bad, 10), std::invalid_argument);
  }
  EXPECT_THROW(sigma_for(1.0, 1e-5, 0.01, 0), std::invalid_argument);
  EXPECT_THROW(rate_for(1.0, 1e-5, 1.0, 0), std::invalid_argument);
  const std::vector<Release> wrong{{PoissonGaussian{2.0, 1.0}, 1}};
  EXPECT_THROW(sigma_for(1.0, 1e-5, 0.01, 10, wrong), std::invalid_argument);
  const std::vector<double> orders{2.0, 1.0};
  EXPECT_THROW(sigma_for(1.0, 1e-5, 0.01, 10, {}, orders), std::invalid_argument);
}

}  // namespace
}  // namespace cudp::privacy
