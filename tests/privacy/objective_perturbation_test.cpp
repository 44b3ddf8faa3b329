// The bound on objective perturbation, judged by the release's own density: with one weight the
// minimum's density is the noise's times the objective's second derivative, and delta an integral.
#include "privacy/rdp/objective_perturbation.hpp"

#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/gaussian.hpp"

namespace cudp::privacy {
namespace {

struct Slopes {
  double first;
  double second;
};
Slopes logistic(double m) {
  const double p = 1.0 / (1.0 + std::exp(m));
  return {-p, p * (1.0 - p)};
}
Slopes hinge(double m) {
  constexpr double h = 0.5;
  if (m > 1.0 + h) return {0.0, 0.0};
  if (m < 1.0 - h) return {-1.0, 0.0};
  return {-(1.0 + h - m) / (2.0 * h), 1.0 / (2.0 * h)};
}
using Loss = Slopes (*)(double);

double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
}

/// Density of argmin sum of phi(v w) + Lambda/2 w^2 + b w at w, b of standard deviation 1 / mu.
double density(Loss loss, const std::vector<double>& vs, double regulariser, double mu, double w) {
  double b = -regulariser * w;
  double curvature = regulariser;
  for (const double v : vs) {
    const Slopes s = loss(v * w);
    b -= s.first * v;
    curvature += s.second * v * v;
  }
  return mu * normal_density(mu * b) * curvature;
}

/// integral of (p - e^epsilon q)+ over the weight, by the midpoint rule.
double true_delta(const std::function<double(double)>& p, const std::function<double(double)>& q,
                  double epsilon, double reach) {
  constexpr int kPoints = 40'000;
  double sum = 0.0;
  for (int i = 0; i < kPoints; ++i) {
    const double w = reach * (2.0 * (i + 0.5) / kPoints - 1.0);
    sum += std::fmax(0.0, p(w) - std::exp(epsilon) * q(w));
  }
  return sum * 2.0 * reach / kPoints;
}

TEST(ObjectivePerturbation, HoldsForTheExactDensity) {
  double closest = 0.0;
  for (const Loss loss : {Loss(logistic), Loss(hinge)})
    for (const std::vector<double>& others :
         {std::vector<double>{}, {1.0, -1.0, 0.3}, {-1.0, -1.0, -1.0, -1.0, -1.0, -1.0}})
      for (const double regulariser : {0.5, 4.0})
        for (const double mu : {0.3, 1.5})
          for (const double v : {1.0, -1.0, 0.4}) {
            const double beta = loss == Loss(logistic) ? 0.25 : 1.0;
            const double kappa = std::log1p(beta / regulariser);
            std::vector<double> more = others;
            more.push_back(v);
            const auto p = [&](double w) { return density(loss, others, regulariser, mu, w); };
            const auto q = [&](double w) { return density(loss, more, regulariser, mu, w); };
            const double reach = (8.0 + 8.0 / mu) / regulariser;
            ASSERT_NEAR(true_delta(
                            p, [](double) { return 0.0; }, 0.0, reach),
                        1.0, 1e-3);
            for (const double epsilon : {0.2, 0.5, 1.0, 2.0}) {
              const double bound = objective_perturbation_delta({mu, kappa}, 0.0, epsilon);
              const double truth =
                  std::fmax(true_delta(p, q, epsilon, reach), true_delta(q, p, epsilon, reach));
              EXPECT_TRUE(truth <= bound * (1.0 + 1e-6) + 1e-12)
                  << truth << " " << bound << " " << regulariser << " " << mu << " " << epsilon;
              if (bound < 1.0) closest = std::fmax(closest, truth / bound);
            }
          }
  EXPECT_GT(closest, 0.3);
}

/// Where no curvature is involved the bound is the Gaussian mechanism's, no more.
TEST(ObjectivePerturbation, IsTheGaussianMechanismWhereThatIsAll) {
  for (const double mu : {0.1, 1.0, 3.0})
    for (const double epsilon : {0.01, 0.5, 2.0}) {
      EXPECT_NEAR(objective_perturbation_delta({mu, 0.0}, 0.0, epsilon),
                  gaussian_delta(mu, epsilon), 1e-12);
      EXPECT_NEAR(objective_perturbation_delta({mu, 0.3}, 0.0, epsilon + 0.3),
                  gaussian_delta(mu, epsilon), 1e-12);
    }
  EXPECT_EQ(objective_perturbation_delta({1.0, 0.3}, 0.0, 0.29), 1.0);
}

/// With other Gaussian releases: the losses, cut off at 0 and not, added up by sampling.
/// False alarm 1e-6 a comparison.
TEST(ObjectivePerturbation, ComposesWithGaussians) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  constexpr int kDraws = 400'000;
  for (const double mu : {0.5, 1.5})
    for (const double others : {0.2, 1.0}) {
      const double epsilon = 0.8;
      double sum = 0.0;
      double squares = 0.0;
      for (int i = 0; i < kDraws; ++i) {
        const double first = std::fmax(0.0, mu * normal(random) + 0.5 * mu * mu) + 0.1;
        const double loss = first + others * normal(random) + 0.5 * others * others;
        const double x = std::fmax(0.0, 1.0 - std::exp(epsilon - loss));
        sum += x;
        squares += x * x;
      }
      const double mean = sum / kDraws;
      const double error = 4.9 * std::sqrt((squares / kDraws - mean * mean) / kDraws);
      const double bound = objective_perturbation_delta({mu, 0.1}, others, epsilon);
      EXPECT_TRUE(mean - error <= bound) << mean << " " << bound;
      EXPECT_TRUE(bound <= mean + error + 0.5 * gaussian_delta(others, 0.7));
    }
}

TEST(ObjectivePerturbation, CalibratesToTheBudget) {
  for (const double epsilon : {0.05, 1.0, 8.0})
    for (const double fixed : {0.0, 0.2 * gaussian_mu(epsilon, 1e-6)}) {
      const double kappa = 0.1 * epsilon;
      const double mu = objective_perturbation_mu(kappa, fixed, 0.01, epsilon, 1e-6);
      const auto delta = [&](double m) {
        return objective_perturbation_delta({m, kappa}, std::hypot(fixed, 0.01 * m), epsilon);
      };
      EXPECT_LE(delta(mu), 1e-6);
      EXPECT_GT(delta(mu * (1.0 + 1e-6)), 1e-6);
    }
  EXPECT_THROW(objective_perturbation_mu(1.0, 0.0, 0.01, 0.9, 1e-6), std::domain_error);
  EXPECT_THROW(objective_perturbation_mu(0.1, 5.0, 0.01, 0.9, 1e-6), std::domain_error);
}

TEST(ObjectivePerturbation, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(objective_perturbation_delta({0.0, 0.1}, 0.0, 1.0), std::invalid_argument);
  EXPECT_THROW(objective_perturbation_delta({1.0, -0.1}, 0.0, 1.0), std::invalid_argument);
  EXPECT_THROW(objective_perturbation_delta({1.0, 0.1}, 0.0, -1.0), std::invalid_argument);
}

TEST(GaussianMu, IsTheLargestThatFits) {
  for (const double epsilon : {0.01, 0.5, 4.0})
    for (const double delta : {1e-10, 1e-5, 0.1}) {
      const double mu = gaussian_mu(epsilon, delta);
      EXPECT_LE(gaussian_delta(mu, epsilon), delta);
      EXPECT_GT(gaussian_delta(mu * (1.0 + 1e-9), epsilon), delta);
    }
  EXPECT_THROW(gaussian_mu(1.0, 0.0), std::invalid_argument);
}

}  // namespace
}  // namespace cudp::privacy
