#include "runtime/methods/linear_risk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/linear_cases.hpp"

namespace cudp {
namespace {

using Wide = long double;

/// The definition, in long double.
struct Oracle {
  const Dataset& data;
  RiskSettings settings;

  Wide weight(std::size_t i) const {
    return data.labels[i] != 0 ? settings.weights.positive : settings.weights.negative;
  }
  Wide slope(Wide m) const {
    if (settings.loss == Loss::logistic) return -1.0L / (1.0L + std::exp(m));
    const Wide h = settings.huber;
    return m > 1 + h ? 0.0L : m < 1 - h ? -1.0L : -(1 + h - m) / (2 * h);
  }
  std::vector<Wide> example(std::size_t i) const {
    const auto n = static_cast<std::size_t>(data.shape.size());
    std::vector<Wide> v;
    Wide square = 1.0L;
    for (std::size_t j = 0; j < n; ++j) {
      const Wide x = data.is_bytes()
                         ? static_cast<Wide>(
                               data.scale * static_cast<float>(data.bytes[i * n + j]) + data.shift)
                         : static_cast<Wide>(data.floats[i * n + j]);
      v.push_back(x);
      square += x * x;
    }
    v.push_back(1.0L);
    const Wide length = std::sqrt(square);
    for (Wide& x : v) {
      x /= std::max<Wide>(settings.max_norm, length);
      if (data.labels[i] == 0) x = -x;
      if (!std::isfinite(square)) x = 0.0L;
    }
    return v;
  }
  std::vector<Wide> gradient(const std::vector<double>& w) const {
    std::vector<Wide> g(w.size(), 0.0L);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::vector<Wide> v = example(i);
      Wide m = 0.0L;
      for (std::size_t j = 0; j < w.size(); ++j) m += v[j] * static_cast<Wide>(w[j]);
      for (std::size_t j = 0; j < w.size(); ++j) g[j] += weight(i) * slope(m) * v[j];
    }
    return g;
  }
};

template <class A, class B>
double distance(const A& a, const B& b) {
  Wide square = 0.0L;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const Wide difference = static_cast<Wide>(a[j]) - static_cast<Wide>(b[j]);
    square += difference * difference;
  }
  return static_cast<double>(std::sqrt(square));
}

std::vector<double> weights(int d, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> w(static_cast<std::size_t>(d));
  for (double& v : w) v = normal(random);
  return w;
}
double length(const std::vector<double>& w) {
  return distance(w, std::vector<double>(w.size(), 0.0));
}

class Risks : public testing::TestWithParam<Loss> {
 protected:
  RiskSettings settings(double max_norm = 1.0, int threads = 1) const {
    return {.loss = GetParam(),
            .max_norm = max_norm,
            .huber = 0.4,
            .max_examples = 5000.0,
            .threads = threads};
  }
};

TEST_P(Risks, GradientIsTheDefinitionsToItsRounding) {
  for (const int examples : {0, 1, 17, 1023, 1024, 3000})
    for (const int features : {1, 7, 8, 33})
      for (const double max_norm : {1.0, 3.0}) {
        const Dataset data = linear_table(examples, features, 3);
        LinearRisk risk(data, settings(max_norm));
        const std::vector<double> w = weights(features + 1, 4);
        const std::vector<double> g = risk.gradient(w);
        // Scales are rounded up by 2^-30: examples are that much shorter than the definition's.
        const double shorter = examples * 0x1p-29 * (1.0 + length(w));
        EXPECT_TRUE(distance(g, Oracle{data, settings(max_norm)}.gradient(w)) <=
                    risk_rounding(risk.settings(), w.size(), length(w), 0x1p-53) + shorter)
            << examples << " " << features;
      }
}

/// Losses with weights; their bounds are those without.
TEST_P(Risks, GradientIsOfTheWeightedLosses) {
  const Dataset data = linear_table(700, 6, 3);
  for (const SignWeights weighted : {SignWeights{0.125f, 1.0f}, SignWeights{1.0f, 0.0f}}) {
    RiskSettings s = settings();
    s.weights = weighted;
    LinearRisk risk(data, s);
    const std::vector<double> w = weights(7, 4);
    const std::vector<Wide> want = Oracle{data, s}.gradient(w);
    const double shorter = 700 * 0x1p-29 * (1.0 + length(w));
    EXPECT_LE(distance(risk.gradient(w), want),
              risk_rounding(s, w.size(), length(w), 0x1p-53) + shorter);
    const std::vector<Extended> wide(w.begin(), w.end());
    EXPECT_LE(distance(risk.extended_gradient(wide), want),
              risk_rounding(s, w.size(), length(w), 0x1p-53) + shorter);
    EXPECT_GT(distance(want, Oracle{data, settings()}.gradient(w)), 1.0) << "weights show";
    // The curvature is the gradient's derivative.
    risk.gradient(w);
    const std::vector<double> along = weights(7, 5);
    const std::vector<double> product = risk.curvature_product(along);
    std::vector<double> moved = w;
    for (std::size_t j = 0; j < w.size(); ++j) moved[j] += 1e-6 * along[j];
    const std::vector<Wide> there = Oracle{data, s}.gradient(moved);
    std::vector<Wide> slope(want.size());
    for (std::size_t j = 0; j < want.size(); ++j) slope[j] = (there[j] - want[j]) / 1e-6L;
    if (s.loss == Loss::logistic) {
      EXPECT_LE(distance(product, slope), 1e-3 * length(along));
    }
  }
}

TEST_P(Risks, CurvatureIsTheGradientsDerivative) {
  const Dataset data = linear_table(500, 5, 9);
  LinearRisk risk(data, settings());
  const std::vector<double> w = weights(6, 1);
  const std::vector<double> p = weights(6, 2);
  risk.gradient(w);
  const std::vector<double> product = risk.curvature_product(p);
  const double step = 1e-6;
  std::vector<double> ahead = w;
  std::vector<double> behind = w;
  for (std::size_t j = 0; j < w.size(); ++j) {
    ahead[j] += step * p[j];
    behind[j] -= step * p[j];
  }
  const Oracle oracle{data, settings()};
  std::vector<Wide> difference = oracle.gradient(ahead);
  const std::vector<Wide> other = oracle.gradient(behind);
  for (std::size_t j = 0; j < w.size(); ++j)
    difference[j] = (difference[j] - other[j]) / (2.0L * static_cast<Wide>(step));
  EXPECT_TRUE(distance(product, difference) <= 1e-3 * length(product) + 1e-6);
}

TEST_P(Risks, DoesNotDependOnThreads) {
  const Dataset data = linear_table(5000, 9, 3);
  LinearRisk one(data, settings(2.0, 1));
  LinearRisk three(data, settings(2.0, 3));
  const std::vector<double> w = weights(10, 4);
  EXPECT_EQ(one.gradient(w), three.gradient(w));
  EXPECT_EQ(one.curvature_product(w), three.curvature_product(w));
}

TEST_P(Risks, OneExampleMovesTheGradientByOneAtMost) {
  Dataset data = linear_table(20, 4, 5, 100.0f);
  data.floats[0] = 1e30f;
  data.floats[7] = 0.0f;
  const std::vector<double> w = weights(5, 4);
  for (const double max_norm : {0.1, 1.0, 50.0}) {
    LinearRisk all(data, settings(max_norm));
    const std::vector<double> whole = all.gradient(w);
    double most = 0.0;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const Dataset less = without(data, i);
      LinearRisk risk(less, settings(max_norm));
      most = std::fmax(most, distance(whole, risk.gradient(w)));
    }
    EXPECT_LE(most, 1.0 + 1e-12);
    EXPECT_GT(most, 0.2);
  }
}

TEST_P(Risks, LeavesOutWhatIsNotFinite) {
  Dataset data = linear_table(40, 3, 5);
  const Dataset clean = data;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    data.floats.insert(data.floats.end(), {0.5f, bad, 2.0f});
    data.labels.push_back(1);
  }
  LinearRisk dirty(data, settings());
  LinearRisk other(clean, settings());
  const std::vector<double> w = weights(4, 4);
  EXPECT_EQ(dirty.gradient(w), other.gradient(w));
  EXPECT_EQ(dirty.curvature_product(w), other.curvature_product(w));
}

TEST_P(Risks, ReadsBytes) {
  Dataset data;
  data.shape = {3, 1, 1};
  data.classes = 2;
  data.bytes = {0, 255, 7, 90, 30, 200};
  data.labels = {1, 0};
  data.scale = 1.0f / 64.0f;
  data.shift = -1.0f;
  LinearRisk risk(data, settings());
  const std::vector<double> w = weights(4, 4);
  EXPECT_TRUE(distance(risk.gradient(w), Oracle{data, settings()}.gradient(w)) <= 1e-8);
}

/// Neighbours' minima, by the oracle's gradient, are no farther apart than is promised.
TEST_P(Risks, MinimaOfNeighboursAreAsCloseAsPromised) {
  constexpr double kTolerance = 1e-7;
  const Dataset data = linear_table(60, 3, 8);
  const std::vector<double> slope = {0.5, -3.0, 1.0, 2.0};
  for (const double regulariser : {0.05, 1.0, 30.0}) {
    const auto minimum = [&](const Dataset& part) {
      LinearRisk risk(part, settings());
      const RiskMinimum found = minimise_risk(risk, {.regulariser = regulariser,
                                                     .linear = slope,
                                                     .linear_bound = 4.0,
                                                     .tolerance = kTolerance});
      EXPECT_LE(found.gradient_norm, kTolerance);
      std::vector<Wide> g = Oracle{part, settings()}.gradient(found.w);
      for (std::size_t j = 0; j < g.size(); ++j)
        g[j] += static_cast<Wide>(regulariser * found.w[j] + slope[j]);
      EXPECT_TRUE(distance(g, std::vector<double>(4, 0.0)) <= 1e-6);
      return found.w;
    };
    const std::vector<double> whole = minimum(data);
    double most = 0.0;
    for (std::size_t i = 0; i < data.size(); ++i)
      most = std::fmax(most, distance(whole, minimum(without(data, i))));
    EXPECT_TRUE(most <= (1.0 + 2.0 * kTolerance) / regulariser);
    if (regulariser == 30.0) {
      EXPECT_GT(most, 0.3 / regulariser);
    }
  }
}

TEST_P(Risks, MinimisesManyKinds) {
  for (const int examples : {0, 1, 2000})
    for (const double regulariser : {1e-3, 1.0, 1e5}) {
      const Dataset data = linear_table(examples, 30, 2, 10.0f);
      LinearRisk risk(data, settings(5.0));
      EXPECT_LE(minimise_risk(risk, {.regulariser = regulariser, .tolerance = 1e-6}).gradient_norm,
                1e-6)
          << examples << " " << regulariser;
    }
}

TEST_P(Risks, RefusesWhatRoundingForbids) {
  const Dataset data = linear_table(3000, 5, 2);
  LinearRisk risk(data, settings());
  const RiskProblem problem{.regulariser = 1.0, .tolerance = 1e-16};
  EXPECT_FALSE(iterations_for_all_data(settings(), 6, problem));
  EXPECT_THROW(minimise_risk(risk, problem), Error);
}

TEST_P(Risks, ExtendedGradientIsTheDefinitionsToItsRounding) {
  const Dataset data = linear_table(2000, 7, 3);
  LinearRisk risk(data, settings());
  const std::vector<double> w = weights(8, 4);
  const std::vector<Extended> g = risk.extended_gradient(std::vector<Extended>(w.begin(), w.end()));
  // Of the examples as they are scaled, in double.
  EXPECT_TRUE(distance(g, risk.gradient(w)) <=
              risk_rounding(risk.settings(), w.size(), length(w), 0x1p-53));
  const double shorter = 2000 * 0x1p-29 * (1.0 + length(w));
  EXPECT_TRUE(distance(g, Oracle{data, settings()}.gradient(w)) <= shorter);
}

/// Whatever the data are: ordinary, all of one class, all alike, one of each and the rest alike,
/// none.
TEST_P(Risks, DescentArrivesWithinThePromisedIterations) {
  const Dataset ordinary = linear_table(400, 3, 8);
  Dataset one_class = ordinary;
  std::ranges::fill(one_class.labels, std::uint8_t{1});
  Dataset alike = ordinary;
  std::ranges::fill(alike.floats, 5.0f);
  Dataset nearly_alike = alike;
  std::ranges::fill(nearly_alike.labels, std::uint8_t{0});
  nearly_alike.labels[0] = 1;
  const std::vector<double> linear = {0.5, -3.0, 1.0, 2.0};
  for (const double regulariser : {0.5, 5.0, 400.0}) {
    const RiskProblem problem{
        .regulariser = regulariser, .linear = linear, .linear_bound = 4.0, .tolerance = 1e-5};
    ASSERT_TRUE(iterations_for_all_data(settings(), 4, problem));
    for (const Dataset& data :
         {ordinary, one_class, alike, nearly_alike, Dataset(linear_table(0, 3, 1))}) {
      LinearRisk risk(data, settings());
      const RiskMinimum slow = minimise_risk(risk, problem, RiskSolver::descent);
      const RiskMinimum fast = minimise_risk(risk, problem);
      EXPECT_LE(slow.gradient_norm, 1e-5);
      EXPECT_TRUE(distance(slow.w, fast.w) <= 2e-5 / regulariser);
    }
  }
}

/// What decides whether there is a result is public: the bound on the examples, never their number.
TEST_P(Risks, WhatIsProvedDoesNotDependOnTheData) {
  RiskSettings s = settings();
  const RiskProblem problem{.regulariser = 48.0, .tolerance = 1e-5};
  s.max_examples = 48'000;
  EXPECT_TRUE(iterations_for_all_data(s, 125, problem));  // l2 = 0.001 on Adult
  s.max_examples = 48e6;
  EXPECT_FALSE(iterations_for_all_data(s, 125, problem));
}

INSTANTIATE_TEST_SUITE_P(Both, Risks, testing::Values(Loss::logistic, Loss::hinge),
                         [](const auto& i) {
                           return i.param == Loss::hinge ? "hinge" : "logistic";
                         });

TEST(LinearRisk, RefusesThreeClasses) {
  Dataset data = linear_table(10, 2, 1);
  data.classes = 3;
  EXPECT_THROW(LinearRisk(data, {}), InputError);
}

}  // namespace
}  // namespace cudp
