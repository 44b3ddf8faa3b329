// From divergences to (epsilon, delta): the accountant at listed Renyi orders, and
// privacy/rdp/zcdp.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "tests/privacy/common.hpp"
#include "tests/privacy/golden.hpp"
#include "tests/privacy/oracle.hpp"

namespace cudp::privacy {
namespace {

Accountant by_rdp(std::vector<Release> releases, const std::vector<double>& orders = default_list) {
  return Accountant({.releases = std::move(releases)},
                    {.kind = AccountantKind::rdp, .orders = orders});
}

PrivacyBound epsilon_of(const std::vector<Release>& releases, double delta,
                        const std::vector<double>& orders = default_list) {
  return by_rdp(releases, orders).epsilon(delta);
}

PrivacyBound delta_of(const std::vector<Release>& releases, double epsilon) {
  return by_rdp(releases).delta(epsilon);
}

double signless(double q, double sigma, double alpha) {
  return q == 1.0 ? alpha / (2 * sigma * sigma) : oracle::rdp_without_signs(q, sigma, alpha);
}

/// Epsilon as the reference computes it: integer orders right, fractional ones without the signs of
/// their series. Looks at the orders near `order`.
double epsilon_of_reference(const std::vector<Release>& releases, double delta, double order) {
  double best = infinity;
  for (const double alpha : default_orders()) {
    if (std::fabs(alpha - order) > 0.35) continue;
    const bool integer = alpha == std::floor(alpha);
    best = std::fmin(best, oracle::epsilon_by(releases, delta, alpha,
                                              integer ? rdp_sampled_gaussian : signless));
  }
  return best;
}

/// Ours is right (by quadrature), and the golden value either agrees to 1e-6 or is what a series
/// without its signs gives, which is too large.
void judge(const std::vector<Release>& releases, double delta, double golden, int& explained) {
  const PrivacyBound found = epsilon_of(releases, delta);
  EXPECT_TRUE(
      close(found.epsilon, oracle::epsilon_by(releases, delta, found.order, oracle::rdp), 1e-9));
  if (close(found.epsilon, golden, 1e-6)) return;
  ++explained;
  EXPECT_LT(found.epsilon, golden);
  EXPECT_TRUE(close(epsilon_of_reference(releases, delta, found.order), golden, 1e-9))
      << golden << " is neither right nor explained";
}

using GoldenEpsilon = GoldenAccounting;

TEST_F(GoldenEpsilon, DefaultOrdersAreTheReferences) {
  const std::vector<double> expected = golden["sampled_gaussian"]["rdp_orders"];
  EXPECT_TRUE(std::ranges::equal(default_orders(), expected));
}

TEST_F(GoldenEpsilon, SampledGaussianAgreesWhereTheReferenceIsRight) {
  int explained = 0;
  for (const auto& c : golden["sampled_gaussian"]["cases"])
    judge({{sampled_gaussian_mechanism(c["q"], c["sigma"]), c["steps"]}}, c["delta"],
          c["epsilon_rdp"], explained);
  // 3.2e-6, 1.4e-5 and 6.2e-4 too large: best orders 5.5, 4.5 and 2.9.
  EXPECT_EQ(explained, 3);
}

TEST_F(GoldenEpsilon, HeterogeneousAgreesWhereTheReferenceIsRight) {
  int explained = 0;
  for (const auto& c : golden["heterogeneous"]) {
    std::vector<Release> releases;
    for (const auto& p : c["phases"])
      releases.push_back({sampled_gaussian_mechanism(p["q"], p["sigma"]), p["steps"]});
    judge(releases, c["delta"], c["epsilon_rdp"], explained);
  }
  EXPECT_EQ(explained, 1);  // 1.9e-6 too large
}

TEST_F(GoldenEpsilon, NeverBelowThePrivacyLossDistribution) {
  for (const auto& c : golden["sampled_gaussian"]["cases"]) {
    const std::vector<Release> releases{
        {sampled_gaussian_mechanism(c["q"], c["sigma"]), c["steps"]}};
    EXPECT_GE(epsilon_of(releases, c["delta"]).epsilon, c["epsilon_pld"].get<double>());
    // Near 1e-15 the reference's delta is the floor of its arithmetic, not of the mechanism.
    const double delta = c["delta_pld_at_eps1"];
    if (delta > 1e-12) {
      EXPECT_GE(delta_of(releases, 1.0).delta, delta);
    }
  }
}

TEST_F(GoldenEpsilon, Zcdp) {
  for (const auto& c : golden["zcdp"]) {
    const double rho = c["rho"], delta = c["delta"];
    EXPECT_TRUE(close(epsilon_from_zcdp(rho, delta), c["epsilon_cks"], 1e-6)) << rho;
    EXPECT_TRUE(close(epsilon_from_zcdp_classical(rho, delta), c["epsilon_classical"], 1e-12));
  }
}

TEST_F(GoldenEpsilon, TheExactGaussianOfTheTestsIsRight) {
  for (const auto& c : golden["gaussian_mechanism"])
    EXPECT_TRUE(close(oracle::gaussian_delta(c["sigma"], c["epsilon"]), c["delta"], 1e-12));
}

TEST(Epsilon, NeverBelowTheExactGaussianAndCloseToIt) {
  for (const double sigma : {0.3, 1.0, 5.0, 40.0})
    for (const std::uint64_t steps : {1u, 10u, 400u})
      for (const double delta : {1e-2, 1e-5, 1e-9, 1e-15}) {
        const double together = sigma / std::sqrt(static_cast<double>(steps));
        const std::vector<Release> releases{{Gaussian{sigma}, steps}};
        const double epsilon = epsilon_of(releases, delta).epsilon;
        EXPECT_LE(oracle::gaussian_delta(together, epsilon), delta) << sigma << " " << steps;
        if (epsilon > 0.2 && epsilon < 100.0) {
          EXPECT_GT(oracle::gaussian_delta(together, 0.7 * epsilon), delta)
              << sigma << " " << steps;
        }
        const double of_delta = delta_of(releases, epsilon).delta;
        EXPECT_TRUE(close(of_delta, delta, 1e-9) || epsilon == 0.0) << of_delta << " " << delta;
        EXPECT_LE(oracle::gaussian_delta(together, epsilon), of_delta);
        const double rho = zcdp_of_gaussian(together), by_zcdp = epsilon_from_zcdp(rho, delta);
        EXPECT_LE(oracle::gaussian_delta(together, by_zcdp), delta);
        EXPECT_LE(by_zcdp, epsilon * (1 + 1e-12));  // it chooses among all orders
      }
}

TEST(Epsilon, SkippingOrdersChangesNothing) {
  std::mt19937_64 bits(4);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  for (int i = 0; i < 200; ++i) {
    std::vector<Release> releases;
    const std::uint64_t length = 1 + bits() % 3;
    std::vector<double> rdp(default_list.size(), 0.0);
    for (std::uint64_t k = 0; k < length; ++k) {
      const double q = std::pow(10.0, -5.0 * uniform(bits));
      const double sigma = std::pow(10.0, -0.5 + 2.0 * uniform(bits));
      releases.push_back({PoissonGaussian{q, sigma}, 1 + bits() % 5000});
      for (std::size_t j = 0; j < rdp.size(); ++j)
        rdp[j] += static_cast<double>(releases.back().count) *
                  rdp_sampled_gaussian(q, sigma, default_list[j]);
    }
    const double delta = std::pow(10.0, -2.0 - 12.0 * uniform(bits));
    double least = infinity;
    for (std::size_t j = 0; j < rdp.size(); ++j)
      least = std::fmin(least, epsilon_at(default_list[j], rdp[j], delta));
    const PrivacyBound found = epsilon_of(releases, delta);
    EXPECT_TRUE(close(found.epsilon, std::fmax(least, 0.0), 1e-10)) << i;
    double log_delta = infinity;
    for (std::size_t j = 0; j < rdp.size(); ++j)
      log_delta = std::fmin(log_delta, log_delta_at(default_list[j], rdp[j], found.epsilon));
    EXPECT_TRUE(close(delta_of(releases, found.epsilon).delta, delta_from_log(log_delta), 1e-8))
        << i;
    const std::vector<Release> reversed(releases.rbegin(), releases.rend());
    EXPECT_TRUE(close(epsilon_of(reversed, delta).epsilon, found.epsilon, 1e-13)) << i;
  }
}

TEST(Epsilon, OrdersMayBeGivenInAnyOrder) {
  const std::vector<Release> releases{{PoissonGaussian{0.01, 1.0}, 2000}};
  const std::vector<double> orders{32.0, 7.2, 2.0, 7.2, 9.0}, one{7.2};
  EXPECT_EQ(epsilon_of(releases, 1e-6, orders).order, 7.2);
  EXPECT_EQ(epsilon_of(releases, 1e-6, orders).epsilon, epsilon_of(releases, 1e-6, one).epsilon);
}

TEST(Epsilon, MonotoneInEveryArgument) {
  const auto epsilon = [](double q, double sigma, std::uint64_t steps, double delta) {
    return epsilon_of({{PoissonGaussian{q, sigma}, steps}}, delta).epsilon;
  };
  for (const double q : {1e-7, 1e-3, 0.02, 0.5})
    for (const double sigma : {0.3, 1.0, 8.0})
      for (const std::uint64_t steps : {1u, 1000u, 10'000'000u})
        for (const double delta : {1e-15, 1e-6, 1e-2}) {
          const double here = epsilon(q, sigma, steps, delta);
          ASSERT_TRUE(here >= 0.0 && here < infinity);
          EXPECT_GE(epsilon(1.5 * q, sigma, steps, delta), here);
          EXPECT_GE(epsilon(q, sigma / 1.5, steps, delta), here);
          EXPECT_GE(epsilon(q, sigma, 2 * steps, delta), here);
          EXPECT_GE(epsilon(q, sigma, steps, delta / 2), here);
        }
}

TEST(Epsilon, NothingReleasedCostsNothing) {
  EXPECT_EQ(epsilon_of({}, 1e-15).epsilon, 0.0);
  const std::vector<Release> idle{{PoissonGaussian{0.5, 1e-200}, 0},
                                  {PoissonGaussian{0.0, 1.0}, 100}};
  EXPECT_EQ(epsilon_of(idle, 1e-15).epsilon, 0.0);
  EXPECT_EQ(delta_of(idle, 0.0).delta, 0.0);
  EXPECT_GT(delta_of({{PoissonGaussian{1e-300, 1e300}, 1}}, 1e6).delta, 0.0);
}

TEST(Epsilon, RefusesWhatItCannotTrust) {
  const std::vector<double> order{2.0}, wrong_order{0.1};
  const auto always = [](double divergence) { return [=](std::size_t) { return divergence; }; };
  EXPECT_THROW(lowest_epsilon(order, always(nan), 1e-5), std::invalid_argument);
  EXPECT_THROW(lowest_epsilon(order, always(-1e-9), 1e-5), std::invalid_argument);
  EXPECT_EQ(lowest_epsilon(order, always(infinity), 1e-5).epsilon, infinity);
  EXPECT_EQ(lowest_epsilon({}, always(0.1), 1e-5).epsilon, infinity);
  EXPECT_THROW(lowest_epsilon(wrong_order, always(0.1), 1e-5), std::invalid_argument);
  EXPECT_THROW(lowest_delta(order, always(nan), 1.0), std::invalid_argument);
  EXPECT_EQ(lowest_delta(order, always(infinity), 1.0).delta, 1.0);
  EXPECT_THROW(lowest_delta(order, always(0.1), -1.0), std::invalid_argument);
  EXPECT_THROW(lowest_delta(order, always(0.1), nan), std::invalid_argument);
  for (const double delta : {0.0, 1.0, -1.0, nan}) {
    EXPECT_THROW(lowest_epsilon(order, always(0.1), delta), std::invalid_argument);
    EXPECT_THROW(epsilon_of({}, delta), std::invalid_argument);
    EXPECT_THROW(epsilon_from_zcdp(0.1, delta), std::invalid_argument);
    EXPECT_THROW(epsilon_from_zcdp_classical(0.1, delta), std::invalid_argument);
  }
  EXPECT_THROW(epsilon_of({{PoissonGaussian{0.5, 1e-200}, 1}}, 1e-5), std::invalid_argument);
  EXPECT_THROW(by_rdp({{PoissonGaussian{0.5, 0.0}, 0}}), std::invalid_argument);
  EXPECT_THROW(epsilon_from_zcdp(-0.1, 1e-5), std::invalid_argument);
  EXPECT_THROW(epsilon_from_zcdp(infinity, 1e-5), std::invalid_argument);
  EXPECT_THROW(zcdp_of_gaussian(0.0), std::invalid_argument);
}

TEST(Zcdp, IsTheBestOrderOfItsCurve) {
  for (const double rho : {1e-9, 1e-3, 0.1, 5.0, 1e4})
    for (const double delta : {0.3, 1e-5, 1e-15}) {
      double best = infinity;
      for (double s = 1e-6; s < 1e7; s *= 1.001)
        best = std::fmin(best, oracle::epsilon_at(1 + s, (1 + s) * rho, delta));
      best = std::fmax(best, 0.0);
      const double found = epsilon_from_zcdp(rho, delta);
      // The grid's own formula has lost digits near alpha = 1: it may be low by 1e-9.
      EXPECT_TRUE(found <= best + 1e-9 * (1 + rho) && found >= best * (1 - 1e-5) - 1e-9)
          << rho << " " << delta << ": " << found << " against " << best;
      EXPECT_LE(found, epsilon_from_zcdp_classical(rho, delta));
    }
}

/// Values to 25 digits, of the same formula with 60: the result is above them, and close.
TEST(Zcdp, EpsilonIsRoundedUpAtSmallRho) {
  struct Case {
    double rho, delta, epsilon;
  };
  for (const auto& [rho, delta, epsilon] : {Case{1e-12, 1e-200, 4.207871528862471517724012e-05},
                                            Case{1e-9, 1e-300, 1.644574274142551003292923e-03},
                                            Case{1e-6, 1e-10, 7.427583685432303882059334e-03},
                                            Case{1e-3, 1e-5, 1.573353931612155050530678e-01},
                                            Case{0.5, 1e-5, 4.728386984943313881512555},
                                            Case{10.0, 1e-6, 3.222166094909759563908524e+01}}) {
    const double found = epsilon_from_zcdp(rho, delta);
    EXPECT_GE(found, epsilon) << rho;
    EXPECT_LE(found, epsilon * (1.0 + 1e-13)) << rho;
  }
}

TEST(Zcdp, ExtremesAreFinite) {
  EXPECT_EQ(epsilon_from_zcdp(0.0, 1e-5), 0.0);
  for (const double rho : {1e-300, 1e-30, 1e30, 1e300})
    for (const double delta : {1e-300, 1e-15, 0.999}) {
      const double epsilon = epsilon_from_zcdp(rho, delta);
      EXPECT_TRUE(epsilon >= 0.0 && epsilon < infinity) << rho << " " << delta;
      EXPECT_TRUE(epsilon <= epsilon_from_zcdp_classical(rho, delta)) << rho << " " << delta;
    }
}

}  // namespace
}  // namespace cudp::privacy
