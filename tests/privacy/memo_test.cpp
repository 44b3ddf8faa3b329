// Results that are kept are those of the accountant itself, and are found by all arguments only.
#include "privacy/memo.hpp"

#include <cmath>
#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/calibrate.hpp"

namespace cudp::privacy {
namespace {

const Composition kSteps{.releases = {{PoissonGaussian{.q = 0.01, .sigma = 1.1}, 500}}};
AccountantOptions coarse() {
  AccountantOptions options;
  options.coarseness = 100.0;
  return options;
}

TEST(AccountantMemo, ReturnsWhatTheAccountantReturns) {
  AccountantMemo memo;
  const PrivacyBound own = Accountant(kSteps, coarse()).epsilon(1e-5);
  for (int i = 0; i < 3; ++i) {
    const PrivacyBound found = memo.epsilon(kSteps, coarse(), 1e-5);
    EXPECT_EQ(found.epsilon, own.epsilon);
    EXPECT_EQ(found.epsilon_lower, own.epsilon_lower);
    EXPECT_EQ(found.interval, own.interval);
    EXPECT_EQ(found.accountant, own.accountant);
    EXPECT_EQ(memo.computations(), 1u);
  }
  const double sigma = calibrate_sigma({}, kSteps.releases[0], 2.0, 1e-5, coarse());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(memo.calibrated_sigma({}, kSteps.releases[0], 2.0, 1e-5, coarse()), sigma);
  EXPECT_EQ(memo.computations(), 2u);
}

/// Every argument is part of the key, also in its last bit.
TEST(AccountantMemo, MistakesNoQuestionForAnother) {
  AccountantMemo memo;
  std::size_t asked = 0;
  const auto expect_new = [&](const Composition& c, const AccountantOptions& o, double delta) {
    EXPECT_EQ(memo.epsilon(c, o, delta).epsilon, Accountant(c, o).epsilon(delta).epsilon);
    EXPECT_EQ(memo.computations(), ++asked);
  };
  expect_new(kSteps, coarse(), 1e-5);
  expect_new(kSteps, coarse(), std::nextafter(1e-5, 1.0));
  Composition c = kSteps;
  c.group = 2;
  expect_new(c, coarse(), 1e-5);
  c = kSteps;
  c.relation = NeighbouringRelation::add;
  expect_new(c, coarse(), 1e-5);
  c = kSteps;
  c.releases[0].count += 1;
  expect_new(c, coarse(), 1e-5);
  c = kSteps;
  std::get<PoissonGaussian>(c.releases[0].mechanism).sigma = std::nextafter(1.1, 2.0);
  expect_new(c, coarse(), 1e-5);
  c = kSteps;
  c.releases.push_back({Gaussian{5.0}, 1});
  expect_new(c, coarse(), 1e-5);
  AccountantOptions o = coarse();
  o.coarseness = 50.0;
  expect_new(kSteps, o, 1e-5);
  o = coarse();
  o.kind = AccountantKind::rdp;
  expect_new(kSteps, o, 1e-5);
  o.orders = {8.0};
  expect_new(kSteps, o, 1e-5);

  const auto sigma = [&](const Release& release, double epsilon, double delta) {
    EXPECT_EQ(memo.calibrated_sigma({}, release, epsilon, delta, coarse()),
              calibrate_sigma({}, release, epsilon, delta, coarse()));
    EXPECT_EQ(memo.computations(), ++asked);
  };
  sigma(kSteps.releases[0], 2.0, 1e-5);
  sigma(kSteps.releases[0], 2.5, 1e-5);
  sigma(kSteps.releases[0], 2.0, 1e-6);
  sigma({PoissonGaussian{.q = 0.02, .sigma = 1.1}, 500}, 2.0, 1e-5);
}

TEST(AccountantMemo, KeepsRefusals) {
  AccountantMemo memo;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW((void)memo.calibrated_sigma({}, kSteps.releases[0], 1e-9, 1e-5, coarse()),
                 std::domain_error);
    EXPECT_THROW((void)memo.epsilon(kSteps, coarse(), 2.0), std::invalid_argument);
  }
  EXPECT_EQ(memo.computations(), 2u);
}

TEST(AccountantMemo, IsSharedByThreads) {
  AccountantMemo memo;
  std::vector<std::future<double>> answers;
  answers.reserve(8);
  for (int i = 0; i < 8; ++i)
    answers.push_back(std::async(std::launch::async, [&] {
      return memo.epsilon(kSteps, AccountantOptions(), 1e-5).epsilon;
    }));
  const double own = Accountant(kSteps).epsilon(1e-5).epsilon;
  for (std::future<double>& answer : answers) EXPECT_EQ(answer.get(), own);
  EXPECT_EQ(memo.computations(), 1u);
}

/// It does not grow with the length of a run.
TEST(AccountantMemo, KeepsTheNewest) {
  AccountantMemo memo;
  const auto ask = [&](std::uint64_t count) {
    Composition c = kSteps;
    c.releases[0].count = count;
    (void)memo.epsilon(c, coarse(), 1e-5);
    return memo.computations();
  };
  for (std::uint64_t n = 1; n <= 20; ++n) EXPECT_EQ(ask(n), n);
  EXPECT_EQ(ask(20), 20u);
  EXPECT_EQ(ask(1), 21u);
}

/// Of long lists of releases fewer results are kept, but not less than those of one run.
TEST(AccountantMemo, KeepsFewerResultsOfManyReleases) {
  constexpr std::size_t kCapacity = 20;
  AccountantMemo memo(kCapacity);
  EXPECT_TRUE(memo.serves_several_runs());
  EXPECT_FALSE(AccountantMemo().serves_several_runs());
  AccountantOptions options;
  options.kind = AccountantKind::rdp;
  options.orders = {8.0};
  const auto ask = [&](std::size_t releases, std::uint64_t count) {
    Composition c;
    for (std::size_t i = 0; i < releases; ++i)
      c.releases.push_back({Gaussian{.sigma = 10.0 + static_cast<double>(i)}, count});
    (void)memo.epsilon(c, options, 1e-5);
    return memo.computations();
  };
  for (std::uint64_t n = 1; n <= kCapacity; ++n) EXPECT_EQ(ask(1, n), n);
  EXPECT_EQ(ask(1, 1), kCapacity);
  for (std::uint64_t n = 1; n <= 12; ++n) EXPECT_EQ(ask(100, n), kCapacity + n);
  for (std::uint64_t n = 12; n > 12 - AccountantMemo::kMaxResultsPerRun; --n)
    EXPECT_EQ(ask(100, n), kCapacity + 12);
  EXPECT_EQ(ask(100, 1), kCapacity + 13);
}

}  // namespace
}  // namespace cudp::privacy
