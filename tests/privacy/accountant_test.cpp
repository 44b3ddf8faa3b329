// The one accountant for all mechanisms, and its inverse problems: privacy/accountant.hpp,
// calibrate.hpp.
#include "privacy/accountant.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/calibrate.hpp"
#include "privacy/known_losses.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "tests/privacy/golden.hpp"

namespace cudp::privacy {
namespace {

using GoldenPld = GoldenAccounting;

const AccountantOptions by_pld{.kind = AccountantKind::pld};

Accountant accountant_of(std::vector<Release> releases, std::uint64_t group = 1,
                         AccountantKind kind = AccountantKind::pld) {
  return Accountant({.releases = std::move(releases), .group = group}, {.kind = kind});
}

/// At most 2e-3 above the reference's value, at most 1e-4 below it, and below the lower bound
/// never.
void expect_near(double found, double golden, const char* what) {
  EXPECT_TRUE(found <= golden * (1 + 2e-3)) << what << ": " << found << " " << golden;
  EXPECT_TRUE(found >= golden * (1 - 1e-4)) << what << ": " << found << " " << golden;
}

void expect_golden(const Composition& composition, const nlohmann::json& c, const char* add,
                   const char* remove, const char* both) {
  for (const double interval : {0.0, 1e-4}) {
    const PrivacyBound found =
        Accountant(composition, {.kind = AccountantKind::pld, .interval = interval})
            .epsilon(c["delta"]);
    expect_near(found.epsilon, c[both], both);
    if (c.contains(add)) {
      expect_near(*found.epsilon_add, c[add], add);
      expect_near(*found.epsilon_remove, c[remove], remove);
    }
    EXPECT_TRUE(found.epsilon_lower <= found.epsilon &&
                found.epsilon_lower >= found.epsilon * (1 - 2e-3));
    EXPECT_TRUE(found.epsilon_lower <= c[both].get<double>() * (1 + 1e-9));
  }
}

TEST_F(GoldenPld, SampledGaussian) {
  for (const auto& c : golden["sampled_gaussian"]["cases"]) {
    const Composition composition{.releases = {{PoissonGaussian{c["q"], c["sigma"]}, c["steps"]}}};
    expect_golden(composition, c, "epsilon_pld_add", "epsilon_pld_remove", "epsilon_pld");
    const PrivacyBound found = Accountant(composition, by_pld).delta(1.0);
    const double expected = c["delta_pld_at_eps1"];
    if (expected > 1e-12)
      expect_near(found.delta, expected, "delta");
    else
      EXPECT_LT(found.delta, expected);  // the reference's floor of arithmetic
  }
}

TEST_F(GoldenPld, Groups) {
  for (const auto& c : golden["group_poisson"])
    expect_golden(
        {.releases = {{PoissonGaussian{c["q"], c["sigma"]}, c["steps"]}}, .group = c["group"]}, c,
        "epsilon_add", "epsilon_remove", "epsilon");
  for (const auto& c : golden["group_fixed_size"])
    expect_golden({.releases = {{FixedSizeGaussian{c["n"], c["batch"], c["sigma"]}, c["steps"]}},
                   .group = c["group"]},
                  c, "epsilon_add", "epsilon_remove", "epsilon");
}

TEST_F(GoldenPld, Heterogeneous) {
  for (const auto& c : golden["heterogeneous"]) {
    std::vector<Release> releases;
    for (const auto& p : c["phases"])
      releases.push_back({sampled_gaussian_mechanism(p["q"], p["sigma"]), p["steps"]});
    expect_golden({.releases = releases}, c, "none", "none", "epsilon_pld");
    std::reverse(releases.begin(), releases.end());
    expect_golden({.releases = releases}, c, "none", "none", "epsilon_pld");
  }
}

TEST_F(GoldenPld, CalibratedSigma) {
  for (const auto& c : golden["calibrate_sigma"]) {
    const Release release{PoissonGaussian{c["q"], 1.0}, c["steps"]};
    const double sigma = calibrate_sigma({}, release, c["epsilon"], c["delta"], by_pld);
    EXPECT_NEAR(sigma / c["sigma_pld"].get<double>(), 1.0, 1e-4);
    EXPECT_LE(
        accountant_of({{PoissonGaussian{c["q"], sigma}, c["steps"]}}).epsilon(c["delta"]).epsilon,
        c["epsilon"].get<double>());
  }
}

TEST(Accountant, EveryGroupIsFiniteAndGrows) {
  const Composition composition{.releases = {{PoissonGaussian{0.01, 1.0}, 2000}}};
  const std::vector<std::uint64_t> sizes = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 23, 32, 45, 63, 64};
  const std::vector<PrivacyBound> found = group_epsilons(composition, sizes, 1e-6, by_pld);
  ASSERT_EQ(found.size(), sizes.size());
  EXPECT_EQ(found[0].epsilon, Accountant(composition, by_pld).epsilon(1e-6).epsilon);
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].epsilon > found[i - 1].epsilon && found[i].epsilon < 1000.0) << i;
    // A group costs at least as much as its examples one by one, for these.
    EXPECT_GT(found[i].epsilon, static_cast<double>(sizes[i]) * found[0].epsilon_lower) << i;
  }
  // Vadhan's lemma lies above, where it says anything.
  const std::optional<double> lemma = vadhan_epsilon(composition, 4, 1e-6, by_pld);
  ASSERT_TRUE(lemma);
  EXPECT_GT(*lemma, found[3].epsilon);
}

TEST(Accountant, MonotoneInEveryArgument) {
  std::mt19937_64 bits(7);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  for (int i = 0; i < 12; ++i) {
    const double q = std::pow(10.0, -3.0 * uniform(bits)), sigma = 0.6 + 3 * uniform(bits);
    const double delta = std::pow(10.0, -3.0 - 10.0 * uniform(bits));
    const std::uint64_t steps = 1 + bits() % 3000, group = 1 + bits() % 4;
    const auto epsilon = [](double a, double b, std::uint64_t n, double d, std::uint64_t k) {
      return accountant_of({{PoissonGaussian{a, b}, n}}, k).epsilon(d).epsilon;
    };
    const double here = epsilon(q, sigma, steps, delta, group);
    EXPECT_GE(epsilon(std::fmin(1.3 * q, 1.0), sigma, steps, delta, group), here) << i;
    EXPECT_GE(epsilon(q, sigma / 1.2, steps, delta, group), here) << i;
    EXPECT_GE(epsilon(q, sigma, 2 * steps, delta, group), here) << i;
    EXPECT_GE(epsilon(q, sigma, steps, delta / 3, group), here) << i;
    EXPECT_GE(epsilon(q, sigma, steps, delta, group + 1), here) << i;
  }
}

TEST(Accountant, OrderAndGroupingOfEqualReleasesDoNotMatter) {
  std::vector<Release> releases{{PoissonGaussian{0.02, 1.1}, 300},
                                {Gaussian{40.0}, 5},
                                {Laplace{30.0}, 4},
                                {BoundedRange{0.05}, 10},
                                {FixedSizeGaussian{5000, 40, 3.0}, 50},
                                {PoissonGaussian{0.02, 1.1}, 200}};
  const double expected = accountant_of(releases).epsilon(1e-6).epsilon;
  std::reverse(releases.begin(), releases.end());
  EXPECT_NEAR(accountant_of(releases).epsilon(1e-6).epsilon, expected, 1e-9);
  std::swap(releases[0], releases[3]);
  EXPECT_NEAR(accountant_of(releases).epsilon(1e-6).epsilon, expected, 1e-9);
}

TEST(Accountant, ManyDifferentReleasesAreGroupedAndTheLossIsStated) {
  std::vector<Release> releases;
  releases.reserve(3000);
  for (int t = 0; t < 3000; ++t)
    releases.push_back({PoissonGaussian{0.005, 1.0 + 0.5 * std::pow(20.0 + t, 0.25) / 4.0}, 1});
  const AccountantOptions grouped{.kind = AccountantKind::pld, .max_distinct_releases = 48};
  const PrivacyBound coarse = Accountant({.releases = releases}, grouped).epsilon(1e-5);
  EXPECT_TRUE(coarse.epsilon_lower < coarse.epsilon && coarse.epsilon_lower > 0.95 * coarse.epsilon)
      << coarse.epsilon_lower << " " << coarse.epsilon;
  // RDP sees every release as it is.
  EXPECT_GT(accountant_of(releases, 1, AccountantKind::rdp).epsilon(1e-5).epsilon,
            coarse.epsilon_lower);
}

TEST(Accountant, BestIsTheLeastOfAll) {
  const std::vector<Release> releases{{PoissonGaussian{0.01, 1.0}, 2000}};
  for (const double delta : {1e-3, 1e-9, 1e-15}) {
    const double by_pld = accountant_of(releases).epsilon(delta).epsilon;
    const double by_rdp = accountant_of(releases, 1, AccountantKind::rdp).epsilon(delta).epsilon;
    const double best = accountant_of(releases, 1, AccountantKind::best).epsilon(delta).epsilon;
    EXPECT_EQ(best, std::fmin(by_pld, by_rdp));
    EXPECT_LT(by_pld, by_rdp);
  }
  const PrivacyBound exact =
      accountant_of({{Gaussian{3.0}, 9}}, 2, AccountantKind::best).epsilon(1e-6);
  EXPECT_NEAR(exact.epsilon, gaussian_epsilon(2.0, 1e-6), 1e-9);
}

TEST(Accountant, ACurveFallsAndEachPointHolds) {
  Accountant accountant = accountant_of({{PoissonGaussian{0.02, 1.2}, 700}});
  std::vector<double> epsilons;
  for (int i = 0; i <= 30; ++i) epsilons.push_back(0.2 * i);
  const std::vector<PrivacyBound> curve = accountant.deltas(epsilons);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LT(curve[i].delta, curve[i - 1].delta) << epsilons[i];
    EXPECT_LE(curve[i].delta_lower, curve[i].delta);
    EXPECT_GT(curve[i].delta_lower, 0.9 * curve[i].delta) << epsilons[i];
  }
}

TEST(Accountant, InverseProblemsComeBack) {
  const Composition before{.releases = {{Gaussian{50.0}, 3}}};
  const double epsilon = 2.0, delta = 1e-6;
  const auto cost = [&](const Release& release) {
    Composition composition = before;
    composition.releases.push_back(release);
    return Accountant(composition, by_pld).epsilon(delta).epsilon;
  };
  const double sigma =
      calibrate_sigma(before, {PoissonGaussian{0.01, 1.0}, 1500}, epsilon, delta, by_pld);
  EXPECT_LE(cost({PoissonGaussian{0.01, sigma}, 1500}), epsilon);
  EXPECT_GT(cost({PoissonGaussian{0.01, sigma * (1 - 1e-4)}, 1500}), epsilon);
  const double q =
      calibrate_rate(before, {PoissonGaussian{0.0, 1.1}, 1500}, epsilon, delta, by_pld);
  EXPECT_LE(cost({PoissonGaussian{q, 1.1}, 1500}), epsilon);
  EXPECT_GT(cost({PoissonGaussian{q * (1 + 1e-4), 1.1}, 1500}), epsilon);
  const std::uint64_t steps =
      calibrate_steps(before, {PoissonGaussian{0.01, 1.1}, 0}, epsilon, delta, by_pld);
  EXPECT_LE(cost({PoissonGaussian{0.01, 1.1}, steps}), epsilon);
  EXPECT_GT(cost({PoissonGaussian{0.01, 1.1}, steps + 1}), epsilon);
  const std::uint64_t batch =
      calibrate_batch(before, {FixedSizeGaussian{5000, 1, 2.5}, 200}, epsilon, delta, by_pld);
  EXPECT_LE(cost({FixedSizeGaussian{5000, batch, 2.5}, 200}), epsilon);
  EXPECT_GT(cost({FixedSizeGaussian{5000, batch + 1, 2.5}, 200}), epsilon);
  EXPECT_THROW(calibrate_rate({.releases = {{Gaussian{0.5}, 3}}}, {PoissonGaussian{0.0, 1.1}, 10},
                              1.0, 1e-6, by_pld),
               std::domain_error);
  EXPECT_THROW(calibrate_sigma(before, {Laplace{1.0}, 1}, 1.0, 1e-6, by_pld), std::domain_error);
}

/// Answers are kept per thread: a new one has none.
std::vector<PrivacyBound> in_a_new_thread(const std::function<std::vector<PrivacyBound>()>& asked) {
  std::vector<PrivacyBound> found;
  std::thread([&] { found = asked(); }).join();
  return found;
}

TEST(Accountant, AnswersTheSameWhateverWasAskedBefore) {
  const Composition composition{.releases = {{PoissonGaussian{0.013, 1.07}, 900}}};
  const std::vector<double> deltas = {1e-5, 3e-5, 1e-9};
  const auto curve = [&] { return Accountant(composition, by_pld).epsilons(deltas); };
  const std::vector<PrivacyBound> alone = in_a_new_thread(curve);
  const std::vector<PrivacyBound> after = in_a_new_thread([&] {
    (void)Accountant(composition, by_pld).epsilon(deltas[0]);
    EXPECT_TRUE(known_epsilon({.releases = composition.releases,
                               .change = Change::remove,
                               .max_distinct_releases = by_pld.max_distinct_releases,
                               .delta = deltas[0]}));
    return curve();
  });
  ASSERT_EQ(alone.size(), after.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].epsilon, after[i].epsilon) << i;
    EXPECT_EQ(alone[i].epsilon_lower, after[i].epsilon_lower) << i;
    EXPECT_EQ(alone[i].epsilon_add, after[i].epsilon_add) << i;
    EXPECT_EQ(alone[i].epsilon_remove, after[i].epsilon_remove) << i;
    EXPECT_EQ(alone[i].interval, after[i].interval) << i;
  }
}

/// Each number of a question decides its answer.
TEST(Accountant, KnownAnswersAreThoseOfTheSameQuestion) {
  (void)in_a_new_thread([] {
    const LossQuestion asked{.releases = {{PoissonGaussian{0.01, 1.0}, 10}}, .delta = 1e-5};
    keep_epsilon(asked, {.epsilon = 2.0});
    EXPECT_EQ(known_epsilon(asked).value_or(PrivacyBound{}).epsilon, 2.0);
    std::vector<LossQuestion> others(8, asked);
    others[0].releases[0].count = 11;
    others[1].releases[0].mechanism = PoissonGaussian{0.01, std::nextafter(1.0, 2.0)};
    others[2].releases.push_back({Gaussian{1.0}, 1});
    others[3].change = Change::remove;
    others[4].group = 2;
    others[5].coarseness = 100.0;
    others[6].delta = std::nextafter(1e-5, 1.0);
    others[7].interval = 1e-4;
    for (const LossQuestion& other : others) EXPECT_FALSE(known_epsilon(other));
    for (int i = 0; i < 64; ++i)
      keep_epsilon({.releases = asked.releases, .delta = 1e-4 * (i + 1)}, {.epsilon = 1.0});
    EXPECT_FALSE(known_epsilon(asked)) << "the last ones are kept";
    return std::vector<PrivacyBound>{};
  });
}

/// A training checks its budget after it calibrated its noise: the search's last bound is found.
TEST(Accountant, TheBoundAtACalibratedNoiseIsKnown) {
  (void)in_a_new_thread([] {
    const double sigma = calibrate_sigma({}, {PoissonGaussian{0.013, 1.0}, 900}, 2.0, 1e-5, by_pld);
    for (const Change change : {Change::add, Change::remove})
      EXPECT_TRUE(known_epsilon({.releases = {{PoissonGaussian{0.013, sigma}, 900}},
                                 .change = change,
                                 .max_distinct_releases = by_pld.max_distinct_releases,
                                 .delta = 1e-5}));
    return std::vector<PrivacyBound>{};
  });
}

TEST(Accountant, NothingReleasedCostsNothing) {
  Accountant idle = accountant_of({{PoissonGaussian{0.0, 1.0}, 100}, {Gaussian{1.0}, 0}});
  EXPECT_EQ(idle.epsilon(1e-10).epsilon, 0.0);
  EXPECT_EQ(idle.delta(0.0).delta, 0.0);
}

TEST(Accountant, RefusesWhatItCannotBound) {
  EXPECT_THROW(accountant_of({{Gaussian{0.0}, 1}}), std::invalid_argument);
  EXPECT_THROW(accountant_of({{Gaussian{1.0}, 1}}, 0), std::invalid_argument);
  EXPECT_THROW(accountant_of({{Gaussian{1.0}, 1}}).epsilon(0.0), std::invalid_argument);
  EXPECT_THROW(accountant_of({{Gaussian{1.0}, 1}}).delta(-1.0), std::invalid_argument);
  // Half of the outputs may be anything.
  EXPECT_THROW(accountant_of({{ApproximateDp{0.1, 0.5}, 1}}).epsilon(1e-6), std::domain_error);
  EXPECT_THROW(accountant_of({{TruncatedPoissonGaussian{100, 0.1, 20, 1.0}, 1}}, 2).epsilon(1e-6),
               std::domain_error);
  const Composition replaced{.releases = {{PoissonLaplace{0.1, 1.0}, 1}},
                             .relation = NeighbouringRelation::replace_one};
  EXPECT_THROW(Accountant(replaced, by_pld).epsilon(1e-6), std::domain_error);
}

}  // namespace
}  // namespace cudp::privacy
