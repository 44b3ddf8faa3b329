#include "runtime/methods/noisy_min.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/mechanism.hpp"

namespace cudp {
namespace {

constexpr double kEpsilon = 1.0;
constexpr double kMoved = 3.0;  // C_obj
constexpr int kDraws = 40'000;
constexpr double kAlarm = 5.3;  // normal quantile of 1e-6 over the 160 comparisons here

/// How often `select` takes place 0 of k equal scores, of which the first is `first`.
using Select = std::function<std::size_t(const std::vector<double>& scores, std::uint64_t draw)>;
int times_first(const Select& select, int k, double first) {
  std::vector<double> scores(static_cast<std::size_t>(k), 100.0);
  scores[0] += first;
  int times = 0;
  for (int i = 0; i < kDraws; ++i) times += select(scores, static_cast<std::uint64_t>(i)) == 0;
  return times;
}

/// A lower bound on the largest |log-ratio| between the two data sets that the choice of place 0,
/// and of any other, shows.
double loss_shown(const Select& select, int k) {
  const int with = times_first(select, k, kMoved);
  const int without = times_first(select, k, 0.0);
  const auto ratio = [](double a, double b) {
    const double deviation = std::sqrt(1.0 / std::fmax(a, 1.0) + 1.0 / std::fmax(b, 1.0));
    return std::fabs(std::log(std::fmax(a, 1.0) / std::fmax(b, 1.0))) - kAlarm * deviation;
  };
  return std::fmax(ratio(with, without), ratio(kDraws - with, kDraws - without));
}

Select real(SelectionNoise noise) {
  return [noise](const std::vector<double>& scores, std::uint64_t draw) {
    const RandomStream stream{Generator::chacha20,
                              {{1, 2, 3}},
                              Stream::selection,
                              draw + 100'000 * scores.size() + (scores[0] > 100.0 ? 5'000'000 : 0)};
    return noisy_min(scores, kMoved, kEpsilon, noise, stream);
  };
}

/// The smallest score + noise of scale C / epsilon where the noise is one-sided or skewed the wrong
/// way, as the authors' published code has it.
Select wrong(bool gumbel) {
  auto random = std::make_shared<std::mt19937_64>(99);
  return [random, gumbel](const std::vector<double>& scores, std::uint64_t) {
    std::exponential_distribution<double> exponential;
    std::size_t best = 0;
    double least = INFINITY;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double e = exponential(*random);
      const double noisy = scores[i] + kMoved / kEpsilon * (gumbel ? -std::log(e) : e);
      if (noisy >= least) continue;
      least = noisy;
      best = i;
    }
    return best;
  };
}

class NoisyMinOf : public testing::TestWithParam<int> {};

TEST_P(NoisyMinOf, CandidatesHidesARecord) {
  const int k = GetParam();
  EXPECT_LE(loss_shown(real(SelectionNoise::gumbel), k), kEpsilon);
  EXPECT_LE(loss_shown(real(SelectionNoise::laplace), k), kEpsilon);
}

TEST_P(NoisyMinOf, CandidatesIsTheExponentialMechanism) {
  const int k = GetParam();
  for (const double moved : {0.0, kMoved}) {
    const double weight = std::exp(-kEpsilon * moved / kMoved);
    const double p = weight / (weight + k - 1);
    const double times = times_first(real(SelectionNoise::gumbel), k, moved);
    EXPECT_TRUE(std::fabs(times - kDraws * p) <= kAlarm * std::sqrt(kDraws * p * (1 - p)))
        << times << " of " << kDraws * p;
  }
}

/// P(place 0) = integral of the density of its noise times P(all others are smaller).
TEST_P(NoisyMinOf, CandidatesHasLaplaceNoise) {
  const int k = GetParam();
  for (const double moved : {0.0, kMoved}) {
    double p = 0.0;
    const double h = 1e-3;
    for (double x = -40.0; x < 40.0; x += h) {
      const double at = x - kEpsilon * moved / kMoved;  // in units of the scale
      const double below = at < 0.0 ? 0.5 * std::exp(at) : 1.0 - 0.5 * std::exp(-at);
      p += h * 0.5 * std::exp(-std::fabs(x)) * std::pow(below, k - 1);
    }
    const double times = times_first(real(SelectionNoise::laplace), k, moved);
    EXPECT_TRUE(std::fabs(times - kDraws * p) <= kAlarm * std::sqrt(kDraws * p * (1 - p)))
        << times << " of " << kDraws * p;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NoisyMinOf, testing::Range(2, 22));

TEST(NoisyMin, IsToldFromNoiseOfTheWrongSign) {
  for (const int k : {8, 21}) {
    EXPECT_GT(loss_shown(wrong(false), k), kEpsilon) << k;
    EXPECT_GT(loss_shown(wrong(true), k), kEpsilon) << k;
  }
}

TEST(NoisyMin, CostsWhatItIsGiven) {
  for (const double rho : {1e-7, 1e-3}) {
    const double gumbel = noisy_min_epsilon(rho, SelectionNoise::gumbel);
    const double laplace = noisy_min_epsilon(rho, SelectionNoise::laplace);
    EXPECT_NEAR(gumbel, 2.0 * laplace, 1e-12);
    EXPECT_NEAR(privacy::zcdp_of(noisy_min_mechanism(gumbel, SelectionNoise::gumbel)), rho,
                1e-6 * rho);
    EXPECT_NEAR(privacy::zcdp_of(noisy_min_mechanism(laplace, SelectionNoise::laplace)), rho,
                1e-3 * rho);
  }
}

TEST(NoisyMin, TakesTheLeastWhereNoiseIsSmall) {
  const std::vector<double> scores = {5.0, 2.0, 9.0};
  const RandomStream stream{Generator::philox, {}, Stream::selection, 1};
  for (const auto noise : {SelectionNoise::gumbel, SelectionNoise::laplace})
    EXPECT_EQ(noisy_min(scores, 1.0, 1e6, noise, stream), 1u);
}

/// The pair that is chosen comes as often as by one exponential mechanism after another.
TEST(NoisyLeast, IsOneChoiceAfterAnother) {
  const std::vector<double> scores = {0.0, 3.0, 1.0, 5.0};
  const double epsilon = 2.0;
  const double sensitivity = 3.0;
  double weight[4];
  double all = 0.0;
  for (std::size_t i = 0; i < 4; ++i)
    all += weight[i] = std::exp(-epsilon * scores[i] / sensitivity);
  double times[4][4] = {};
  for (int draw = 0; draw < kDraws; ++draw) {
    const RandomStream stream{
        Generator::chacha20, {{7}}, Stream::selection, static_cast<std::uint64_t>(draw)};
    const std::vector<std::size_t> pair = noisy_smallest(scores, 2, sensitivity, epsilon, stream);
    ASSERT_EQ(pair.size(), 2u);
    ++times[pair[0]][pair[1]];
  }
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      if (i == j) continue;
      const double p = weight[i] / all * weight[j] / (all - weight[i]);
      EXPECT_TRUE(std::fabs(times[i][j] - kDraws * p) <= kAlarm * std::sqrt(kDraws * p * (1 - p)))
          << i << " " << j << ": " << times[i][j] << " of " << kDraws * p;
    }
  EXPECT_EQ(
      noisy_smallest(scores, 9, 1.0, 1.0, {Generator::chacha20, {}, Stream::selection, 0}).size(),
      4u);
}

/// First digits that are hard, and any.
std::vector<std::uint32_t> digits_of(std::size_t k, std::mt19937_64& random) {
  std::vector<std::uint32_t> digits(k * kAllDigits);
  for (std::uint32_t& word : digits) word = static_cast<std::uint32_t>(random());
  for (std::size_t i = 0; i < k; ++i) {
    std::uint32_t* const u = digits.data() + i * kAllDigits;
    switch (random() % 8) {
      case 0:  // U nearly 0
        u[0] = 0;
        u[1] = static_cast<std::uint32_t>(random() % 4) << (random() % 32);
        break;
      case 1:  // U nearly 1
        u[0] = ~std::uint32_t{0};
        u[1] = ~(static_cast<std::uint32_t>(random() % 4) << (random() % 32));
        break;
      case 2:  // U nearly another one's
        std::copy_n(digits.data(), 2, u);
        u[1] += static_cast<std::uint32_t>(random() % 3) - 1;
        break;
      case 3:  // U nearly 1/2
        u[0] = 0x7fffffffu + static_cast<std::uint32_t>(random() % 2);
        break;
      default:
        break;
    }
  }
  return digits;
}

std::vector<std::uint32_t> first_digits(const std::vector<std::uint32_t>& digits) {
  std::vector<std::uint32_t> first;
  for (std::size_t at = 0; at < digits.size(); at += kAllDigits)
    first.insert(first.end(), digits.begin() + static_cast<std::ptrdiff_t>(at),
                 digits.begin() + static_cast<std::ptrdiff_t>(at + kFirstDigits));
  return first;
}

/// What is decided in double is what all digits say.
TEST(NoisyLeast, WhatIsDecidedEarlyIsRight) {
  std::mt19937_64 random(17);
  int open = 0;
  int decided = 0;
  for (int draw = 0; draw < 1500; ++draw) {
    const std::size_t k = 1 + random() % 6;
    const double rate = std::exp2(static_cast<double>(random() % 40) - 30.0);
    std::vector<double> scores(k);
    for (double& s : scores)
      s = draw % 3 == 0 ? 7.0 : static_cast<double>(random() % (1 << 30)) * 0x1p-20;
    const std::vector<std::uint32_t> digits = digits_of(k, random);
    const std::size_t count = 1 + random() % k;
    const auto all = exact_noisy_order(scores, count, rate, digits);
    ASSERT_EQ(all.size(), count);
    const auto quick = quick_noisy_order(scores, count, rate, first_digits(digits));
    ++(quick ? decided : open);
    if (quick) {
      ASSERT_EQ(*quick, all) << draw;
    }
  }
  EXPECT_GT(open, 200);
  EXPECT_GT(decided, 200);
}

/// Two that have their first 64 bits in common are told apart by the next: by a U larger by 2^-100
/// the noise is larger, and that one the least.
TEST(NoisyLeast, DrawsDigitsUntilTheLeastIsUnique) {
  std::vector<std::uint32_t> digits(2 * kAllDigits, 0x9abcdef0u);
  digits[kAllDigits + 3] += 1u << 28;
  const std::vector<double> scores = {5.0, 5.0};
  EXPECT_FALSE(quick_noisy_order(scores, 1, 1.0, first_digits(digits)));
  EXPECT_EQ(exact_noisy_order(scores, 1, 1.0, digits), std::vector<std::size_t>{1});
  // A score that is larger by more than that says otherwise.
  EXPECT_EQ(exact_noisy_order(std::vector<double>{5.0, 5.0 + 0x1p-40}, 1, 1.0, digits),
            std::vector<std::size_t>{0});
  digits[kAllDigits + 3] -= 1u << 28;
  EXPECT_THROW(exact_noisy_order(scores, 1, 1.0, digits), std::runtime_error);
}

}  // namespace
}  // namespace cudp
