// Advanced composition of sampled Gaussians, judged by its formula worked out by hand, by the exact
// losses that it bounds, and by the Renyi accountant that came after it.
#include "privacy/rdp/advanced.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/calibrate.hpp"

namespace cudp::privacy {
namespace {

double tail(double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); }

/// The exact Gaussian mechanism's epsilon, by bisection on its two tails.
double gaussian(double sigma, double delta) {
  double low = 0.0;
  double high = 1e3;
  for (int i = 0; i < 200; ++i) {
    const double e = 0.5 * (low + high);
    const double d = tail(e * sigma - 0.5 / sigma) - std::exp(e) * tail(e * sigma + 0.5 / sigma);
    (d <= delta ? high : low) = e;
  }
  return high;
}

double by_hand(double q, double sigma, double steps, double delta) {
  const double e = gaussian(sigma, 0.5 * delta / (steps * q));
  const double sampled = std::log(1.0 + q * (std::exp(e) - 1.0));
  return sampled * std::sqrt(2.0 * steps * std::log(2.0 / delta)) +
         steps * sampled * (std::exp(sampled) - 1.0);
}

TEST(Advanced, IsItsFormula) {
  for (const double q : {0.001, 0.02, 1.0})
    for (const double sigma : {2.0, 5.0, 40.0})
      for (const std::uint64_t steps : {1u, 100u, 5000u}) {
        const Mechanism m = q == 1.0 ? Mechanism(Gaussian{sigma}) : PoissonGaussian{q, sigma};
        const std::vector<Release> once{{m, steps}};
        const double right = by_hand(q, sigma, static_cast<double>(steps), 1e-6);
        EXPECT_NEAR(advanced_epsilon(once, 1e-6), right, 1e-6 * right);
        const std::vector<Release> apart{{m, steps - steps / 3}, {m, steps / 3}};
        EXPECT_NEAR(advanced_epsilon(apart, 1e-6), right, 1e-6 * right);
      }
}

TEST(Advanced, IsNeverBelowTheTruthNorTheRenyiBound) {
  for (const double q : {0.005, 0.05})
    for (const double sigma : {1.0, 4.0, 20.0})
      for (const std::uint64_t steps : {10u, 1000u}) {
        const auto epsilon = [&](AccountantKind kind) {
          return Accountant({.releases = {{PoissonGaussian{q, sigma}, steps}}}, {.kind = kind})
              .epsilon(1e-5);
        };
        const PrivacyBound found = epsilon(AccountantKind::advanced);
        EXPECT_EQ(bound_name(found), "advanced");
        EXPECT_GT(found.epsilon, epsilon(AccountantKind::pld).epsilon_lower);
        EXPECT_GT(found.epsilon, epsilon(AccountantKind::rdp).epsilon);
      }
}

TEST(Advanced, DeltaIsItsInverse) {
  Accountant accountant({.releases = {{PoissonGaussian{0.01, 3.0}, 500}}},
                        {.kind = AccountantKind::advanced});
  const double epsilon = accountant.epsilon(1e-5).epsilon;
  const double delta = accountant.delta(epsilon * (1.0 + 1e-9)).delta;
  EXPECT_NEAR(delta, 1e-5, 1e-10);
  EXPECT_LE(accountant.epsilon(delta).epsilon, epsilon * (1.0 + 1e-9));
  EXPECT_EQ(accountant.delta(0.0).delta, 1.0);
}

TEST(Advanced, Calibrates) {
  const Release release{PoissonGaussian{0.02, 1.0}, 400};
  const double sigma = calibrate_sigma({}, release, 1.0, 1e-5, {.kind = AccountantKind::advanced});
  const auto epsilon = [&](double s) {
    return advanced_epsilon(std::vector<Release>{{PoissonGaussian{0.02, s}, 400}}, 1e-5);
  };
  EXPECT_LE(epsilon(sigma), 1.0);
  EXPECT_GT(epsilon(sigma * (1.0 - 1e-4)), 1.0);
  EXPECT_GT(sigma, calibrate_sigma({}, release, 1.0, 1e-5, {.kind = AccountantKind::rdp}));
}

TEST(Advanced, RefusesWhatItHasNoTheoremFor) {
  const std::vector<Release> releases{{PoissonGaussian{0.02, 1.0}, 400}};
  EXPECT_THROW(advanced_epsilon(releases, 1e-5, {.group = 2}), std::domain_error);
  EXPECT_THROW(advanced_epsilon(releases, 1e-5, {.relation = NeighbouringRelation::replace_one}),
               std::domain_error);
  EXPECT_THROW(advanced_epsilon(std::vector<Release>{{Laplace{1.0}, 1}}, 1e-5), std::domain_error);
  EXPECT_THROW(advanced_epsilon(releases, 0.0), std::invalid_argument);
  EXPECT_EQ(advanced_epsilon({}, 1e-5), 0.0);
  EXPECT_EQ(advanced_epsilon(std::vector<Release>{{PoissonGaussian{0.0, 1.0}, 4}}, 1e-5), 0.0);
}

}  // namespace
}  // namespace cudp::privacy
