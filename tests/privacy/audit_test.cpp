#include "privacy/audit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

constexpr double kError = 0.05;

/// Steinke, Nasr, Jagielski 2023: Appendix D, and section 7 for the last one, of which they print
/// the digits cut off.
TEST(AuditBound, AgreesWithPublishedNumbers) {
  EXPECT_NEAR(p_value({100, 100, 75}, std::log(3.0), 0.0), 0.553, 5e-4);
  EXPECT_NEAR(epsilon_lower({100, 100, 75}, 0.0, kError), 0.702, 5e-4);
  EXPECT_NEAR(epsilon_lower({100, 100, 75}, 1e-4, kError), 0.699, 5e-4);
  EXPECT_NEAR(epsilon_lower({1000, 100, 75}, 1e-4, kError), 0.673, 5e-4);
  EXPECT_NEAR(epsilon_lower({100'000, 1510, 1439}, 1e-5, kError), 2.675, 1e-3);
}

/// Without delta, and with every guess right, p is q^r.
TEST(AuditBound, HasAClosedFormWhereAllGuessesAreRight) {
  for (const std::uint64_t r : {1u, 16u, 400u}) {
    const double exact = -std::log(std::pow(kError, -1.0 / static_cast<double>(r)) - 1.0);
    const double bound = epsilon_lower({400, r, r}, 0.0, kError);
    EXPECT_LE(bound, std::fmax(0.0, exact));
    EXPECT_NEAR(bound,
                std::fmax(0.0, -std::log(std::pow(kError, -1.0 / static_cast<double>(r)) - 1.0)),
                1e-6);
  }
}

TEST(AuditBound, GrowsWithRightGuessesAndShrinksWithDeltaAndCanaries) {
  EXPECT_LT(epsilon_lower({500, 100, 70}, 1e-5, kError),
            epsilon_lower({500, 100, 80}, 1e-5, kError));
  EXPECT_GT(epsilon_lower({500, 100, 80}, 1e-5, kError),
            epsilon_lower({500, 100, 80}, 1e-3, kError));
  EXPECT_GT(epsilon_lower({500, 100, 80}, 1e-3, kError),
            epsilon_lower({5000, 100, 80}, 1e-3, kError));
  EXPECT_EQ(epsilon_lower({500, 100, 55}, 1e-5, kError), 0.0);
  EXPECT_EQ(epsilon_lower({500, 0, 0}, 1e-5, kError), 0.0);
  EXPECT_EQ(gaussian_epsilon_lower({500, 0, 0}, 1e-5, kError), 0.0);
  EXPECT_LT(gaussian_epsilon_lower({500, 100, 80}, 1e-5, kError),
            gaussian_epsilon_lower({500, 100, 90}, 1e-5, kError));
}

/// Far in the tail, where probabilities underflow, delta still counts.
TEST(AuditBound, DoesNotUnderflow) {
  const double p = p_value({100'000, 100'000, 99'999}, 0.1, 1e-6);
  EXPECT_GT(p, 1e-6);  // alpha is at least 1 / m
  EXPECT_LE(p, 1.0);
}

TEST(AuditBound, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(p_value({10, 5, 6}, 1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(p_value({10, 11, 6}, 1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(p_value({0, 0, 0}, 1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(p_value({10, 5, 4}, -1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(p_value({10, 5, 4}, 1.0, NAN), std::invalid_argument);
  EXPECT_THROW(epsilon_lower({10, 5, 4}, 0.0, 0.0), std::invalid_argument);
  EXPECT_THROW(refutes({10, 5, 4}, gaussian_trade_off(1.0), 1.0), std::invalid_argument);
  EXPECT_THROW(gaussian_trade_off(-1.0), std::invalid_argument);
  EXPECT_THROW(epsilon_lower({10, 5, 4}, std::vector<Release>{{Laplace{1.0}, 1}}, 1e-5, kError),
               std::domain_error);
}

TEST(TradeOff, IsWhatTheDefinitionsSay) {
  EXPECT_NEAR(gaussian_trade_off(1.0)(0.5), 0.15865525393145707, 1e-15);
  EXPECT_NEAR(gaussian_trade_off(0.0)(0.3), 0.3, 1e-15);
  EXPECT_EQ(gaussian_trade_off(1.0)(1.0), 1.0);
  const std::vector<double> epsilon{std::log(4.0)};
  const std::vector<double> delta{0.1};
  const TradeOffCurve k = trade_off(epsilon, delta);
  EXPECT_NEAR(k(0.5), 0.1, 1e-15);
  EXPECT_NEAR(k(1.0), 0.9, 1e-15);
  EXPECT_EQ(k(0.05), 0.0);
}

/// All (epsilon, delta) of a Gaussian together are nearly its trade-off curve, and never above.
TEST(TradeOff, ComesFromAPrivacyCurve) {
  std::vector<double> epsilons;
  std::vector<double> deltas;
  for (double e = 0.0; e <= 8.0; e += 0.0625) {
    epsilons.push_back(e);
    deltas.push_back(gaussian_delta(1.3, e));
  }
  const TradeOffCurve table = trade_off(epsilons, deltas);
  const TradeOffCurve exact = gaussian_trade_off(1.3);
  for (double p = 0.001; p < 1.0; p += 0.013) {
    EXPECT_LE(table(p), exact(p) * (1.0 + 1e-9));
    EXPECT_GT(table(p), exact(p) * 0.98);
  }
}

/// The largest P(at least v right) over all distributions of the number of right guesses that the
/// inequalities leave, by trying them all on a lattice.
double most_by_trying(int made, int right, const TradeOffCurve& k) {
  constexpr int kParts = 60;
  std::vector<int> p(static_cast<std::size_t>(made) + 1);
  double most = 0.0;
  const auto feasible = [&] {
    double r = 0.0;
    double h = 0.0;
    for (int i = made; i > 0; --i) {
      r += i * p[static_cast<std::size_t>(i)] / static_cast<double>(kParts * made);
      h += (made - i) * p[static_cast<std::size_t>(i)] / static_cast<double>(kParts * made);
      const double below = h + (made - i + 1) * p[static_cast<std::size_t>(i) - 1] /
                                   static_cast<double>(kParts * made);
      if (below < k(r) - 1e-12) return false;
    }
    return true;
  };
  const auto tail = [&] {
    return std::accumulate(p.begin() + right, p.end(), 0) / static_cast<double>(kParts);
  };
  const auto visit = [&](auto&& self, std::size_t at, int left) -> void {
    if (at == 0) {
      p[0] = left;
      if (tail() > most && feasible()) most = tail();
      return;
    }
    for (p[at] = 0; p[at] <= left; ++p[at]) self(self, at - 1, left - p[at]);
  };
  visit(visit, static_cast<std::size_t>(made), kParts);
  return most;
}

TEST(TradeOff, RefutesExactlyWhatNoDistributionAllows) {
  for (const double mu : {0.3, 0.6, 1.0})
    for (const int right : {3, 4}) {
      const TradeOffCurve k = gaussian_trade_off(mu);
      const double most = most_by_trying(4, right, k);
      ASSERT_LT(most, 0.95);
      const Guesses g{4, 4, static_cast<std::uint64_t>(right)};
      EXPECT_FALSE(refutes(g, k, most)) << mu << " " << right;
      EXPECT_TRUE(refutes(g, k, most + 0.05)) << mu << " " << right << " " << most;
    }
}

/// Randomised response by epsilon: right guesses are binomial. Whatever has so much probability is
/// not refuted, and Steinke's bound, which is exact here, never says less than that of the curve.
TEST(TradeOff, AllowsRandomisedResponse) {
  const std::vector<double> delta{0.0};
  for (const double epsilon : {0.3, 1.0, 2.5})
    for (std::uint64_t right = 10; right <= 20; ++right) {
      const Guesses g{50, 20, right};
      const double p = p_value(g, epsilon, 0.0);
      if (p >= 1.0) continue;
      EXPECT_FALSE(refutes(g, trade_off(std::vector<double>{epsilon}, delta), p * 0.999));
    }
}

// Attackers on canaries of mechanisms: how often a bound at 95 % is above the truth.
constexpr int kRepetitions = 1000;
/// At 5 %, 1000 repetitions give more than 88 with probability below 1e-6.
constexpr int kMostWrong = 88;

Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made) {
  std::ranges::sort(scores);
  Guesses g{scores.size(), made, 0};
  for (std::uint64_t i = 0; i < made / 2; ++i) {
    g.correct += scores[i].second ? 0 : 1;
    g.correct += scores[scores.size() - 1 - i].second ? 1 : 0;
  }
  return g;
}

template <class Score>
std::vector<Guesses> attacks(const Score& score, std::uint64_t canaries, std::uint64_t made) {
  std::mt19937_64 random(7);
  std::vector<Guesses> all;
  for (int i = 0; i < kRepetitions; ++i) {
    std::vector<std::pair<double, bool>> scores;
    for (std::uint64_t j = 0; j < canaries; ++j) {
      const bool in = (random() & 1) != 0;
      scores.emplace_back(score(in, random), in);
    }
    all.push_back(guess(std::move(scores), made));
  }
  return all;
}

TEST(AuditCoverage, OfRandomisedResponse) {
  const double epsilon = 1.0;
  std::bernoulli_distribution truth(1.0 / (1.0 + std::exp(-epsilon)));
  std::uniform_real_distribution<double> tie;
  const auto score = [&](bool in, auto& random) {
    return (truth(random) == in ? 1.0 : 0.0) + 0.5 * tie(random);
  };
  int wrong = 0;
  double mean = 0.0;
  for (const Guesses& g : attacks(score, 400, 200)) {
    wrong += p_value(g, epsilon, 0.0) < kError ? 1 : 0;
    mean += epsilon_lower(g, 0.0, kError) / kRepetitions;
  }
  EXPECT_LE(wrong, kMostWrong);
  EXPECT_GT(mean, 0.6 * epsilon);
}

TEST(AuditCoverage, OfTheGaussianMechanism) {
  for (const double mu : {0.5, 1.5}) {
    const double delta = 1e-5;
    const double epsilon = gaussian_epsilon(mu, delta);
    std::normal_distribution<double> noise;
    const auto score = [&](bool in, auto& random) { return (in ? mu : 0.0) + noise(random); };
    int wrong_any = 0;
    int wrong_curve = 0;
    double any = 0.0;
    double curve = 0.0;
    for (const Guesses& g : attacks(score, 400, 60)) {
      wrong_any += p_value(g, epsilon, delta) < kError ? 1 : 0;
      wrong_curve += refutes(g, gaussian_trade_off(mu), kError) ? 1 : 0;
      any += epsilon_lower(g, delta, kError) / kRepetitions;
      curve += gaussian_epsilon_lower(g, delta, kError) / kRepetitions;
    }
    EXPECT_LE(wrong_any, kMostWrong);
    EXPECT_LE(wrong_curve, kMostWrong);
    EXPECT_GT(curve, any);
    EXPECT_GT(curve, 0.35 * epsilon);
    EXPECT_LT(curve, epsilon);
  }
}

/// Of many sampled sums, by the curve of the accountant.
TEST(AuditCoverage, OfTheSampledGaussianMechanism) {
  constexpr double kRate = 0.1;
  constexpr double kSigma = 0.8;
  constexpr int kSteps = 20;
  const std::vector<Release> releases{{PoissonGaussian{kRate, kSigma}, kSteps}};
  std::vector<double> epsilons;
  std::vector<double> deltas;
  Accountant accountant({.releases = releases});
  for (double e = 0.0; e < 6.0; e += 0.125) {
    epsilons.push_back(e);
    deltas.push_back(accountant.delta(e).delta);
  }
  const TradeOffCurve curve = trade_off(epsilons, deltas);
  std::normal_distribution<double> noise(0.0, kSigma);
  std::bernoulli_distribution sampled(kRate);
  const auto score = [&](bool in, auto& random) {
    double odds = 0.0;
    for (int t = 0; t < kSteps; ++t) {
      const double x = (in && sampled(random) ? 1.0 : 0.0) + noise(random);
      odds += std::log1p(kRate * std::expm1((x - 0.5) / (kSigma * kSigma)));
    }
    return odds;
  };
  int wrong = 0;
  const std::vector<Guesses> all = attacks(score, 400, 60);
  for (const Guesses& g : all) wrong += refutes(g, curve, kError) ? 1 : 0;
  EXPECT_LE(wrong, kMostWrong);

  const double epsilon = accountant.epsilon(1e-5).epsilon;
  const double bound = epsilon_lower(all[0], releases, 1e-5, kError);
  EXPECT_LT(bound, epsilon);
  EXPECT_GT(bound, 0.2 * epsilon);
}

/// Of the Gaussian mechanism the curve of the accountant shows what the exact one does.
TEST(AuditBound, OfAMechanismsOwnCurveFindsItsNoise) {
  const std::vector<Release> releases{{Gaussian{3.0}, 4}};
  for (const std::uint64_t right : {70u, 85u, 95u}) {
    const Guesses g{500, 100, right};
    const double exact = gaussian_epsilon_lower(g, 1e-5, kError);
    const double bound = epsilon_lower(g, releases, 1e-5, kError);
    EXPECT_LE(bound, exact * 1.005);
    EXPECT_GT(bound, exact * 0.9);
  }
}

}  // namespace
}  // namespace cudp::privacy
