#include "runtime/gate/gate.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/gate/release_observer.hpp"
#include "runtime/methods/training_size.hpp"
#include "tests/support/expect_normal.hpp"
#include "tests/support/print.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

GaussianRelease release_of(double grid, double noise_std) {
  return {.name = "a sum",
          .purpose = Stream::noise,
          .step = 3,
          .grid = grid,
          .noise_std = noise_std,
          .sensitivity = 1.0,
          .charge = {privacy::Gaussian{0x1p-40}, 8}};
}

Gate gate_of(std::uint64_t seed) { return {Generator::chacha20, key_from_seed(seed), all_paid()}; }

std::vector<std::int64_t> noise_of(std::uint64_t seed, double s, std::size_t count) {
  return rounded_normals({Generator::chacha20, key_from_seed(seed), Stream::noise, 3}, s, 0, count);
}

TEST(Gate, ReleasesTheSumAndRoundedNoiseOnTheGrid) {
  for (const double grid : {0x1p-30, 0x1p-1, 1.0, 0x1p10})
    for (const double s : {0x1p16, 0x1.8p20, 1234567.891, 0x1p33})
      for (const std::size_t d : {1u, 2u, 127u, 128u, 300u, 70'000u}) {
        std::vector<std::int64_t> sums(d);
        for (std::size_t i = 0; i < d; ++i) sums[i] = static_cast<std::int64_t>(i * i) - 4000;
        Gate gate = gate_of(5);
        const std::vector<double> got = gate.release(release_of(grid, s * grid), sums);
        const std::vector<std::int64_t> k = noise_of(5, s, d);
        ASSERT_EQ(got.size(), d);
        for (std::size_t i = 0; i < d; ++i)
          ASSERT_EQ(got[i], grid * static_cast<double>(sums[i] + k[i])) << i;
      }
}

TEST(Gate, TheNoiseHasTheStandardDeviationAskedFor) {
  Gate gate = gate_of(6);
  const std::vector<std::int64_t> sums(100'000, 17);
  std::vector<double> noise;
  for (const double r : gate.release(release_of(0x1p-20, 0.37), sums))
    noise.push_back(r - 17 * 0x1p-20);
  expect_normal(noise, 0.37 * 0.37);
}

TEST(Gate, WrapsModulo64Bits) {
  const std::vector<std::int64_t> k = noise_of(5, 0x1p40, 64);
  const std::vector<std::int64_t> sums(64, kLargest);
  Gate gate = gate_of(5);
  const std::vector<double> got = gate.release(release_of(1.0, 0x1p40), sums);
  int wrapped = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto want = static_cast<std::int64_t>(static_cast<std::uint64_t>(kLargest) +
                                                static_cast<std::uint64_t>(k[i]));
    EXPECT_EQ(got[i], static_cast<double>(want));
    wrapped += want < 0 ? 1 : 0;
  }
  EXPECT_GT(wrapped, 10);
  EXPECT_LT(wrapped, 54);
}

TEST(Gate, RefusesWhatTheProofDoesNotHoldFor) {
  const std::vector<std::int64_t> sums(3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  Gate gate = gate_of(1);
  const auto refuses = [&](double grid, double noise_std) {
    EXPECT_THROW(gate.release(release_of(grid, noise_std), sums), std::invalid_argument)
        << grid << ' ' << noise_std;
  };
  for (const double grid : {0.0, -1.0, 3.0, 0x1.8p-20, nan, inf, 0x1p-1074}) refuses(grid, 0x1p20);
  for (const double s :
       {0.0, -0x1p20, std::nextafter(0x1p16, 0.0), std::nextafter(0x1p40, inf), nan, inf})
    refuses(0x1p-7, s * 0x1p-7);
  for (const double sensitivity : {0.0, -1.0, nan, inf}) {
    GaussianRelease r = release_of(1.0, 0x1p20);
    r.sensitivity = sensitivity;
    EXPECT_THROW(gate.release(r, sums), std::invalid_argument);
  }
  EXPECT_THROW(gate.release(release_of(1.0, 0x1p20), std::span<const std::int64_t>()),
               std::invalid_argument);
  EXPECT_TRUE(gate.released().empty());
  EXPECT_NO_THROW(gate.release(release_of(0x1p-7, 0x1p9), sums));
}

/// Nothing is drawn, nor listed, that was not paid for.
TEST(Gate, AsksTheBooksBeforeItDraws) {
  std::vector<Charge> asked;
  bool paid = false;
  class OneAnswer : public ReleaseAuthority {
   public:
    OneAnswer(std::vector<Charge>& all, bool& answer) : all_(all), answer_(answer) {}
    bool admit(const Charge& charge) override {
      all_.push_back(charge);
      return answer_;
    }

   private:
    std::vector<Charge>& all_;
    bool& answer_;
  };
  OneAnswer books(asked, paid);
  Gate gate(Generator::chacha20, key_from_seed(1), books);
  const GaussianRelease r = release_of(1.0, 0x1p20);
  EXPECT_THROW(gate.release(r, 1), std::logic_error);
  EXPECT_EQ(asked, std::vector<Charge>{r.charge});
  EXPECT_TRUE(gate.released().empty());
  EXPECT_TRUE(gate.listed().empty());
  EXPECT_THROW(gate.draw_noise(r), std::logic_error);
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_TRUE(gate.released().empty());
  paid = true;
  EXPECT_NO_THROW(gate.release(r, 1));
}

/// sigma x sensitivity of the charge, to the last bit.
TEST(Gate, RefusesLessNoiseThanWasPaidFor) {
  Gate gate = gate_of(1);
  GaussianRelease r = release_of(1.0, 0x1p20);
  r.sensitivity = 0.1;
  const double sigma = 0x1p20 / 0.1;  // in double a little more than the quotient, or less
  const bool above = std::fma(sigma, 0.1, -0x1p20) > 0.0;
  const double most = above ? std::nextafter(sigma, 0.0) : sigma;
  const std::vector<privacy::Mechanism> more = {privacy::Gaussian{std::nextafter(most, 1e300)},
                                                privacy::PoissonGaussian{0.5, 2.0 * most}};
  for (const privacy::Mechanism& mechanism : more) {
    r.charge.mechanism = mechanism;
    EXPECT_THROW(gate.release(r, 1), std::logic_error);
  }
  r.charge.mechanism = privacy::Gaussian{most};
  EXPECT_NO_THROW(gate.release(r, 1));
}

class Budget : public testing::Test {
 protected:
  static constexpr privacy::Gaussian kSize{36.0};
  PrivacyBudget budget{privacy::Ledger(), [this](const privacy::Ledger& l) { saved.push_back(l); }};
  std::vector<privacy::Ledger> saved;
};

/// Whatever is numbered is charged, and durable, when the gate is told that it may be released;
/// under the same key once.
TEST_F(Budget, ChargesWhatIsReleasedAsTrainingGoesOn) {
  const Charge first{privacy::Gaussian{5.0}, 0};
  EXPECT_TRUE(budget.admit(first));
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].releases(), (std::vector<privacy::Release>{{privacy::Gaussian{5.0}, 1}}));
  EXPECT_TRUE(budget.admit(first));
  EXPECT_EQ(saved.size(), 1u);
  EXPECT_THROW(static_cast<void>(budget.admit({privacy::Gaussian{6.0}, 0})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(budget.admit({privacy::Gaussian{5.0}, 2})), std::invalid_argument);
}

TEST_F(Budget, AdmitsWithoutANumberOnlyWhatWasChargedBefore) {
  EXPECT_FALSE(budget.admit({kSize, {}}));
  privacy::Ledger ledger;
  ledger.charge({kSize, 1});
  budget.plan(ledger);
  EXPECT_EQ(saved, std::vector<privacy::Ledger>{ledger});
  EXPECT_FALSE(budget.admit({privacy::Gaussian{35.0}, {}}));
  EXPECT_TRUE(budget.admit({kSize, {}}));
  EXPECT_FALSE(budget.admit({kSize, {}}));  // it is used up
}

TEST_F(Budget, PartsOfOneReleaseUseItUpTogether) {
  privacy::Ledger ledger;
  ledger.charge({kSize, 2});
  budget.plan(ledger);
  const Charge half{.mechanism = kSize, .number = {}, .parts = 2};
  EXPECT_TRUE(budget.admit(half));
  EXPECT_TRUE(budget.admit({kSize, {}}));
  EXPECT_FALSE(budget.admit({kSize, {}}));  // one part is as much as all
  EXPECT_TRUE(budget.admit(half));
  EXPECT_FALSE(budget.admit(half));
  ledger.charge({kSize, 1});
  budget.plan(ledger);  // what was used before stays so
  EXPECT_FALSE(budget.admit({kSize, {}, 2}));
  EXPECT_TRUE(budget.admit(half));
}

/// A run that is resumed goes on with what was used up, and under another key with nothing.
TEST_F(Budget, WhatWasTakenOutlivesTheProcess) {
  privacy::Ledger ledger;
  ledger.charge({kSize, 2});
  budget.plan(ledger);
  ASSERT_TRUE(budget.admit({kSize, {}}));
  PrivacyBudget resumed(
      budget.ledger(), [](const privacy::Ledger&) {}, budget.used_charges());
  EXPECT_TRUE(resumed.admit({kSize, {}}));
  EXPECT_FALSE(resumed.admit({kSize, {}}));
  PrivacyBudget renewed(
      budget.ledger(), [](const privacy::Ledger&) {}, budget.used_charges());
  renewed.fresh_key(0);
  EXPECT_FALSE(renewed.admit({kSize, {}}));
}

/// The number of examples is charged before there is a plan, which must know of it.
TEST_F(Budget, APlanForgetsNothing) {
  privacy::Ledger ledger;
  ledger.charge({kSize, 1});
  budget.plan(ledger);
  EXPECT_THROW(budget.plan(privacy::Ledger()), std::logic_error);
  privacy::Ledger plan;
  plan.limit({.order = 16.0, .epsilon = 3.0, .delta = 1e-5});
  plan.charge({kSize, 1});
  plan.charge({privacy::Gaussian{20.0}, 1});
  budget.plan(plan);
  EXPECT_EQ(saved.back(), plan);
  EXPECT_NE(budget.filter(), nullptr);
  EXPECT_FALSE(budget.admit({privacy::Gaussian{0.1}, 0}));  // more than is left
}

/// The difference of two sums under the same noise would be in clear.
TEST(Gate, DrawsFromAStreamOnce) {
  Gate gate = gate_of(1);
  GaussianRelease r = release_of(1.0, 0x1p20);
  gate.release(r, 1);
  EXPECT_THROW(gate.release(r, 2), std::logic_error);
  r.step = 4;
  EXPECT_NO_THROW(gate.release(r, 2));
  r.purpose = Stream::covariance;
  EXPECT_NO_THROW(gate.release(r, 2));
}

TEST(Gate, ListsThePublicArgumentsOfWhatItReleased) {
  Gate gate = gate_of(1);
  const GaussianRelease first = release_of(1.0, 0x1p20);
  const GaussianRelease second{.name = "another",
                               .purpose = Stream::covariance,
                               .step = 0,
                               .grid = 0x1p-3,
                               .noise_std = 0x1p22,
                               .sensitivity = 0.5,
                               .charge = {privacy::PoissonGaussian{0.1, 0x1p23}, 9}};
  gate.release(first, std::vector<std::int64_t>(7));
  gate.release(second, 9);
  EXPECT_EQ(gate.released(), (std::vector<Released>{{first, 7}, {second, 1}}));
}

/// A resumed run's list goes on where the interrupted one's ended.
TEST(Gate, ListsEqualNeighboursAsOneAndGoesOn) {
  Gate gate = gate_of(1);
  GaussianRelease r = release_of(1.0, 0x1p20);
  for (r.step = 0; r.step < 3; ++r.step) gate.release(r, 5);
  const privacy::NoisyValue three{.name = "a sum",
                                  .times = 3,
                                  .numbers = 1,
                                  .grid = 1.0,
                                  .noise_std = 0x1p20,
                                  .sensitivity = 1.0};
  EXPECT_EQ(gate.listed(), std::vector<privacy::NoisyValue>{three});

  Gate resumed(Generator::chacha20, key_from_seed(1), all_paid(), gate.listed());
  resumed.release(r, 6);
  r.noise_std *= 2.0;
  ++r.step;
  resumed.release(r, 7);
  privacy::NoisyValue four = three;
  four.times = 4;
  privacy::NoisyValue other = three;
  other.times = 1;
  other.noise_std = 0x1p21;
  EXPECT_EQ(resumed.listed(), (std::vector<privacy::NoisyValue>{four, other}));
}

class Replacing : public ReleaseObserver {
 public:
  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    name = what.name;
    ASSERT_EQ(values.size(), sizeof(double));
    const double other = 42.0;
    std::memcpy(values.data(), &other, sizeof other);
  }
  std::string name;
};

/// What an engine adds itself is the noise of a release, drawn and listed as one.
TEST(Gate, DrawsTheNoiseOfAReleaseForAnEngine) {
  const GaussianRelease r = release_of(0x1p-3, 0x1p20);
  Gate gate = gate_of(5), other = gate_of(5);
  const std::int64_t k = gate.draw_noise(r);
  EXPECT_EQ(0x1p-3 * static_cast<double>(100 + k), other.release(r, 100));
  EXPECT_EQ(gate.released(), other.released());
  EXPECT_EQ(gate.listed(), other.listed());
  EXPECT_THROW(gate.draw_noise(r), std::logic_error);
  EXPECT_THROW(gate.release(r, 1), std::logic_error);
  EXPECT_THROW(other.draw_noise(r), std::logic_error);

  GaussianRelease bad = r;
  bad.step = 9;
  bad.grid = 0.3;
  EXPECT_THROW(gate.draw_noise(bad), std::invalid_argument);
  bad.grid = 0x1p-3;
  bad.charge.mechanism = privacy::Gaussian{0x1p30};
  EXPECT_THROW(gate.draw_noise(bad), std::logic_error);

  Replacing release_observer;
  Gate watched(Generator::chacha20, key_from_seed(1), all_paid(), {}, &release_observer);
  EXPECT_THROW(watched.draw_noise(r), std::logic_error) << "the release observer would see nothing";
}

TEST(Gate, ShowsAReleaseObserverWhatLeaves) {
  Replacing release_observer;
  Gate gate(Generator::chacha20, key_from_seed(1), all_paid(), {}, &release_observer);
  EXPECT_EQ(gate.release(release_of(1.0, 0x1p20), 5), 42.0);
  EXPECT_EQ(release_observer.name, "a sum");
}

TEST(NoiseGrid, IsAPowerOfTwoThatTheNoiseIsAMillionOf) {
  for (const double noise : {1e-9, 0.03, 0.5, 1.0, 36.4, 1e6, 1e9}) {
    const double grid = noise_grid(noise, 0.5);
    EXPECT_LE(grid, 0.5);
    EXPECT_GE(noise / grid, 0x1p20);
    if (grid < 0.5) {
      EXPECT_LT(noise / grid, 0x1p21);
    }
    EXPECT_EQ(grid, std::exp2(std::round(std::log2(grid))));
  }
  for (const double noise : {0.0, -1.0, std::nan(""), HUGE_VAL})
    EXPECT_THROW(noise_grid(noise, 1.0), std::invalid_argument);
}

TEST(UnitsOf, AreExactModulo64Bits) {
  EXPECT_EQ(units_of(-37.5, 0.25), -150);
  EXPECT_EQ(units_of(0.0, 0.25), 0);
  EXPECT_EQ(units_of(0x1p63, 1.0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(units_of(-0x1p63, 1.0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(units_of(0x1p64 + 0x1p12, 1.0), 4096);
  EXPECT_EQ(units_of(-0x1p70 - 0x1p20, 1.0), -(1 << 20));
  EXPECT_EQ(units_of(0x1p63 - 0x1p10, 1.0), kLargest - 1023);
  EXPECT_EQ(units_of(std::nan(""), 1.0), 0);
  EXPECT_EQ(units_of(HUGE_VAL, 1.0), 0);
}

// What an attacker can do with a released number of examples, who knows all settings and wants to
// tell N from N + 1.

constexpr double kExamples = 5000.0;
constexpr double kEpsilon = 1.0;
constexpr double kDelta = 1e-5;
constexpr int kRuns = 10'000;

/// The number before it is rounded to a whole one, which tells more.
double noisy_number(double n, double noise, std::uint64_t seed) {
  Gate gate(Generator::chacha20, key_from_seed(seed), all_paid());
  const double grid = noise_grid(noise, 1.0);
  return gate.release({.name = "size of the training set",
                       .purpose = Stream::dataset_size,
                       .step = 0,
                       .grid = grid,
                       .noise_std = noise,
                       .sensitivity = 1.0,
                       .charge = {privacy::Gaussian{noise}, {}}},
                      units_of(n, grid));
}

/// Noise that spends (epsilon, delta) on this release alone, so that an attack shows best.
double attacked_noise() { return 1.0 / privacy::gaussian_mu(kEpsilon, kDelta); }

/// Under either candidate the noise is a whole number of the grid, and its last eight bits are
/// uniform: no candidate is ruled out, as a float's last bits once ruled out all but one.
/// Chi-square of 255 at 1e-6.
TEST(NumberOfExamples, NoCandidateIsRuledOutByItsLastBits) {
  const double noise = attacked_noise();
  const double grid = noise_grid(noise, 1.0);
  for (const double candidate : {kExamples - 1.0, kExamples, kExamples + 1.0}) {
    std::vector<int> counts(256);
    for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
      const double units = (noisy_number(kExamples, noise, seed) - candidate) / grid;
      ASSERT_EQ(units, std::round(units));
      ++counts[static_cast<std::uint64_t>(static_cast<std::int64_t>(units)) % 256];
    }
    double chi_square = 0.0;
    for (const int c : counts) chi_square += (c - kRuns / 256.0) * (c - kRuns / 256.0);
    chi_square /= kRuns / 256.0;
    EXPECT_LT(chi_square, 378.0) << candidate;
    EXPECT_GT(chi_square, 161.0) << candidate;
  }
}

/// The likelihood ratio is the most powerful test (Neyman, Pearson), here a threshold on the
/// number: at none is the power above e^epsilon times the false alarms and delta, but for the
/// statistics of 10,000 runs at 1e-6 (4.9 standard deviations).
TEST(NumberOfExamples, TheBestTestHasNoMorePowerThanIsCertified) {
  const double noise = attacked_noise();
  std::vector<double> without;
  std::vector<double> with;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    without.push_back(noisy_number(kExamples, noise, 2 * seed));
    with.push_back(noisy_number(kExamples + 1.0, noise, 2 * seed + 1));
  }
  const auto above = [](const std::vector<double>& all, double threshold) {
    double count = 0.0;
    for (const double x : all) count += x > threshold ? 1.0 : 0.0;
    return count / kRuns;
  };
  double largest = 0.0;
  for (double z = -3.0; z <= 3.0; z += 0.125) {
    const double threshold = kExamples + z * noise;
    const double alarms = above(without, threshold);
    const double power = above(with, threshold);
    const double slack =
        4.9 * (std::sqrt(power / kRuns) + std::exp(kEpsilon) * std::sqrt(alarms / kRuns));
    EXPECT_LE(power, std::exp(kEpsilon) * alarms + kDelta + slack) << z;
    largest = std::fmax(largest, power - alarms);
  }
  // It is not blind either: the distance in total variation is 2 Phi(mu / 2) - 1.
  const double mu = 1.0 / noise;
  EXPECT_NEAR(largest, std::erf(mu / std::sqrt(8.0)), 4.9 * std::sqrt(0.5 / kRuns));
}

TEST(NumberOfExamples, IsReleasedByTheGateAsAWholeNumber) {
  DataSplit data;
  data.train.labels.assign(5000, 0);
  data.train.classes = 2;
  Gate gate = gate_of(2);
  const TrainingSize size = training_size(data, 36.0, gate);
  EXPECT_EQ(size.value, std::round(noisy_number(kExamples, 36.0, 2)));
  EXPECT_EQ(gate.released(), (std::vector<Released>{{{.name = "size of the training set",
                                                      .purpose = Stream::dataset_size,
                                                      .step = 0,
                                                      .grid = noise_grid(36.0, 1.0),
                                                      .noise_std = 36.0,
                                                      .sensitivity = 1.0,
                                                      .charge = {privacy::Gaussian{36.0}, {}}},
                                                     1}}));
}

}  // namespace
}  // namespace cudp
