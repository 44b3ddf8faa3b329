// The Renyi divergences and the zCDP of every mechanism, against their definitions:
// privacy/rdp/mechanism.hpp and what is behind it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include "privacy/rdp/dominating_pair.hpp"
#include "privacy/rdp/fixed_size.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/pair.hpp"
#include "privacy/rdp/poisson_laplace.hpp"
#include "privacy/rdp/pure.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "tests/privacy/common.hpp"

namespace cudp::privacy {
namespace {

using Real = boost::multiprecision::cpp_bin_float_50;

std::string setting(double a, double b, double alpha) {
  return std::to_string(a) + ", " + std::to_string(b) + ", alpha = " + std::to_string(alpha);
}

/// log E_second[(first / second)^alpha] for mixtures of N(c, sigma^2), c = centres[j] with
/// probability weights[j]; over z > `from` only.
struct Normals {
  std::vector<double> centres, weights;
};
Real log_moment_of(const Normals& first, const Normals& second, double sigma_, double alpha,
                   double from = -1e300) {
  const Real sigma = sigma_;
  const Real& pi = boost::math::constants::pi<Real>();
  const auto density = [&](const Normals& m, const Real& z) -> Real {
    Real sum = 0;
    for (std::size_t j = 0; j < m.centres.size(); ++j) {
      const Real x = (z - m.centres[j]) / sigma;
      sum += m.weights[j] * exp(-x * x / 2);
    }
    return sum / sqrt(2 * pi);
  };
  const auto integrand = [&](const Real& x) -> Real {
    const Real f = density(first, x * sigma), g = density(second, x * sigma);
    return f * exp((Real(alpha) - 1) * log(f / g));
  };
  double least = 0.0, most = 0.0;
  for (const Normals* m : {&first, &second})
    for (const double c : m->centres) {
      least = std::fmin(least, c / sigma_);
      most = std::fmax(most, c / sigma_);
    }
  const double span = most - least, width = std::fmin(0.5, 1.5 / std::fmax(span, 1e-9));
  const double end = most + alpha * span + 15.5;
  Real sum = 0;
  for (double x = std::fmax(from / sigma_, least - alpha * span - 15.5); x < end; x += width)
    sum += boost::math::quadrature::gauss<Real, 30>::integrate(integrand, Real(x), Real(x + width));
  return log(sum);
}

/// 1 / (alpha - 1) log of sum p^alpha q^(1 - alpha), in fifty digits.
double divergence(const std::vector<Real>& p, const std::vector<Real>& q, double alpha) {
  Real sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum += p[i] * exp((Real(alpha) - 1) * log(p[i] / q[i]));
  return static_cast<double>(log(sum) / (Real(alpha) - 1));
}

const std::vector<double> orders{1.0 + 1e-9, 1.01, 1.5, 2.0, 3.7, 8.0, 33.3, 200.0, 1e4};

TEST(Laplace, IsItsClosedFormInFiftyDigits) {
  for (const double scale : {1e-2, 0.3, 1.0, 7.0, 1e3, 1e8})
    for (const double alpha : orders) {
      const Real a = alpha, e = 1 / Real(scale);
      const Real moment = (a * exp((a - 1) * e) + (a - 1) * exp(-a * e)) / (2 * a - 1);
      expect_just_above(rdp_laplace(scale, alpha), static_cast<double>(log(moment) / (a - 1)),
                        2e-11, setting(scale, 0, alpha));
    }
  // The closed form itself, by its definition: three pieces, the middle one integrated.
  const Real e = Real(1) / 2, a = 3.7;
  const Real middle = boost::math::quadrature::gauss<Real, 30>::integrate(
      [&](const Real& z) -> Real { return exp(-z * e) / 2 * e * exp(a * (2 * z - 1) * e); },
      Real(0), Real(1));
  const Real whole = exp(-a * e) / 2 + middle + exp(a * e) * exp(-e) / 2;
  EXPECT_TRUE(std::fabs(rdp_laplace(2.0, 3.7) / static_cast<double>(log(whole) / (a - 1)) - 1) <=
              1e-11);
}

TEST(Pure, IsRandomisedResponseAndBoundsAnythingPure) {
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<> uniform(-1.0, 1.0);
  for (const double epsilon : {1e-6, 0.1, 1.0, 5.0, 60.0})
    for (const double alpha : orders) {
      const Real e = epsilon, p = exp(e) / (1 + exp(e));
      const double bound = rdp_pure(epsilon, alpha);
      expect_just_above(bound, divergence({p, 1 - p}, {1 - p, p}, alpha), 2e-11,
                        setting(epsilon, 0, alpha));
      EXPECT_LE(rdp_laplace(1.0 / epsilon, alpha), bound * (1 + 1e-10));
      EXPECT_LE(bound, epsilon * (1 + 1e-14));
      EXPECT_LE(bound, zcdp_of_pure(epsilon) * alpha * (1 + 1e-10)) << setting(epsilon, 0, alpha);
      // An exponential mechanism of four outcomes whose scores move by up to epsilon / 2.
      std::vector<Real> a, b;
      Real a_sum = 0, b_sum = 0;
      for (int i = 0; i < 4; ++i) {
        const Real score = uniform(bits), moved = score + uniform(bits) * e / 2;
        a.push_back(exp(score));
        b.push_back(exp(moved));
        a_sum += a.back();
        b_sum += b.back();
      }
      for (Real& x : a) x /= a_sum;
      for (Real& x : b) x /= b_sum;
      EXPECT_LE(divergence(a, b, alpha), bound) << setting(epsilon, 0, alpha);
    }
}

TEST(BoundedRange, IsTheWorstOfItsTwoOutcomePairs) {
  for (const double epsilon : {1e-5, 0.05, 1.0, 4.0, 40.0})
    for (const double alpha : orders) {
      double worst = 0.0;
      const Real e = epsilon;
      for (int i = 1; i < 400; ++i) {
        const Real t = e * i / 400, p = (1 - exp(t - e)) / (1 - exp(-e));
        worst =
            std::fmax(worst, divergence({p, 1 - p}, {p * exp(-t), (1 - p) * exp(e - t)}, alpha));
      }
      const double bound = rdp_bounded_range(epsilon, alpha);
      EXPECT_LE(worst, bound) << setting(epsilon, 0, alpha);
      EXPECT_LE(bound, 0.125 * alpha * epsilon * epsilon * (1 + 1e-14));
      EXPECT_LE(bound, epsilon * (1 + 1e-14));
      // The grid misses the worst t by little, where the loss is not close to its limit.
      if (alpha * epsilon < 20.0) {
        EXPECT_LE(bound, worst * (1 + 1e-3)) << setting(epsilon, 0, alpha);
      }
    }
}

TEST(BoundedRange, CoversSelectionsWithMonotoneScores) {
  // One record moves some scores by up to 1, all in one direction: weights e^(epsilon score).
  std::mt19937_64 bits(2);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  for (int run = 0; run < 200; ++run) {
    const std::size_t k = 2 + bits() % 20;
    const double epsilon = std::pow(10.0, -1.5 + 2.0 * uniform(bits));
    std::vector<Real> p(k), q(k);
    Real p_sum = 0, q_sum = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const double score = 3.0 * uniform(bits), moved = bits() % 2 == 0 ? uniform(bits) : 1.0;
      p_sum += p[i] = exp(Real(epsilon) * score);
      q_sum += q[i] = exp(Real(epsilon) * (score + moved));
    }
    for (std::size_t i = 0; i < k; ++i) {
      p[i] /= p_sum;
      q[i] /= q_sum;
    }
    for (const double alpha : {1.1, 2.0, 9.5, 80.0}) {
      EXPECT_LE(divergence(p, q, alpha), rdp_bounded_range(epsilon, alpha));
      EXPECT_LE(divergence(q, p, alpha), rdp_bounded_range(epsilon, alpha));
    }
  }
}

TEST(Pairs, JustAboveQuadratureInBothDirections) {
  std::mt19937_64 bits(3);
  std::uniform_real_distribution<> uniform(0.0, 1.0);
  for (int run = 0; run < 12; ++run) {
    const std::size_t size = 1 + bits() % 4;
    Normals mixture, other{{0.0}, {1.0}};
    double sum = 0.0;
    for (std::size_t j = 0; j < size; ++j) {
      mixture.centres.push_back(run % 3 == 0 && size > 1 ? static_cast<double>(j)
                                                         : 3.0 * uniform(bits));
      mixture.weights.push_back(std::pow(10.0, -4.0 * uniform(bits)));
      sum += mixture.weights.back();
    }
    for (double& w : mixture.weights) w /= sum;
    if (run % 4 == 1) other = {{-1.0, 0.0}, {0.25, 0.75}};
    const double sigma = 0.5 + 4.0 * uniform(bits), alpha = 1.05 + 7.0 * uniform(bits);
    const GaussianPair pair{.probability = 1.0,
                            .first = {mixture.centres, mixture.weights},
                            .second = {other.centres, other.weights},
                            .sigma = sigma};
    const GaussianPair mirrored{
        .probability = 1.0, .first = pair.second, .second = pair.first, .sigma = sigma};
    const auto truth = [&](const Normals& first, const Normals& second) {
      return static_cast<double>(log_moment_of(first, second, sigma, alpha)) / (alpha - 1);
    };
    // (The oracle's weights sum to 1 within a rounding, which a divergence of 1e-4 feels.)
    expect_just_above(rdp_of_pairs({&pair, 1}, alpha) + 1e-15, truth(mixture, other), 1e-9,
                      setting(sigma, run, alpha));
    expect_just_above(rdp_of_pairs({&mirrored, 1}, alpha) + 1e-15, truth(other, mixture), 1e-9,
                      setting(sigma, run, alpha));
  }
}

TEST(Pairs, AgreeWithTheSampledGaussianAndStayAboveWhereTheIntegralIsTooLong) {
  for (const double q : {1e-7, 1e-3, 0.3})
    for (const double sigma : {0.05, 0.6, 2.0, 40.0})
      for (const double alpha : {1.01, 2.0, 6.5, 60.0}) {
        const auto pair = dominating_pairs(PoissonGaussian{q, sigma}, Change::remove, 1);
        const double exact = rdp_sampled_gaussian(q, sigma, alpha);
        EXPECT_TRUE(std::fabs(rdp_of_pairs(pair, alpha) / exact - 1) <= 1e-8)
            << setting(q, sigma, alpha);
        const auto added = dominating_pairs(PoissonGaussian{q, sigma}, Change::add, 1);
        EXPECT_LE(rdp_of_pairs(added, alpha), exact * (1 + 1e-9)) << setting(q, sigma, alpha);
      }
  const auto pair = dominating_pairs(PoissonGaussian{0.01, 1e-3}, Change::remove, 4);
  const double far = rdp_of_pairs(pair, 500.0);
  EXPECT_TRUE(far > 0.5 * 500.0 * 16e6 - 20.0 && far <= 0.5 * 500.0 * 16e6 * (1 + 1e-12)) << far;
}

TEST(Groups, GrowWithTheirSizeAndEqualTheSingleAtOne) {
  for (const double alpha : {1.5, 4.0}) {
    double before = 0.0;
    for (std::uint64_t k = 1; k <= 16; k *= 2) {
      const Neighbours neighbours{.relation = NeighbouringRelation::add_or_remove, .group = k};
      const double now = rdp(PoissonGaussian{0.01, 2.0}, alpha, neighbours);
      EXPECT_GT(now, before * 1.5) << k;
      before = now;
      const double kd = static_cast<double>(k);
      EXPECT_TRUE(std::fabs(rdp(Gaussian{2.0}, alpha, neighbours) / (alpha * kd * kd / 8) - 1) <=
                  1e-13);
      EXPECT_EQ(rdp(Laplace{3.0}, alpha, neighbours), rdp_laplace(3.0 / kd, alpha));
      EXPECT_EQ(rdp(BoundedRange{0.1}, alpha, neighbours), rdp_bounded_range(0.1 * kd, alpha));
    }
    EXPECT_EQ(rdp(PoissonGaussian{0.01, 2.0}, alpha), rdp_sampled_gaussian(0.01, 2.0, alpha));
    const Neighbours add{.relation = NeighbouringRelation::add, .group = 1};
    EXPECT_LT(rdp(PoissonGaussian{0.01, 2.0}, alpha, add), rdp(PoissonGaussian{0.01, 2.0}, alpha));
  }
}

TEST(FixedSize, IsTheIntegralAndBoundsTheWorstPairKnown) {
  for (const double q : {1e-3, 0.3})
    for (const double sigma : {0.5, 4.0})
      for (const double alpha : {1.2, 5.5, 20.0}) {
        // E[x^a + x^(1-a) - x - 1; x > 1] at x = 1 - q + q e^((2z-1)/(2 sigma^2)), z > 1/2.
        const Normals base{{0.0}, {1.0}}, mixed{{0.0, 1.0}, {1 - q, q}};
        const auto moment = [&](double power) -> Real {
          return exp(log_moment_of(mixed, base, sigma, power, 0.5));
        };
        const Real excess = moment(alpha) + moment(1 - alpha) - moment(1.0) - moment(0.0);
        const double truth = static_cast<double>(log(1 + excess)) / (alpha - 1);
        const double found = rdp_fixed_size(q, sigma, alpha);
        expect_just_above(found, truth * (1 - 1e-12), 1e-9, setting(q, sigma, alpha));
        EXPECT_LE(found, rdp_fixed_size_wang(q, sigma, alpha) * (1 + 1e-10));
        // Replacing +1 by -1 among zeros, where the sum moves by 2: a lower bound.
        const Normals minus{{-0.5, 0.0}, {q, 1 - q}}, plus{{0.0, 0.5}, {1 - q, q}};
        const double pair =
            static_cast<double>(log_moment_of(plus, minus, sigma, alpha)) / (alpha - 1);
        EXPECT_LE(pair, found) << setting(q, sigma, alpha);
      }
}

TEST(FixedSize, WangsSumIsWhatTheoremNineSays) {
  for (const double q : {1e-3, 0.1})
    for (const double sigma : {0.7, 3.0})
      for (const int alpha : {2, 3, 10, 64}) {
        Real sum = 1, binomial = alpha;
        const Real r = 1 / (Real(sigma) * Real(sigma));
        for (int j = 2; j <= alpha; ++j) {
          binomial *= Real(alpha - j + 1) / j;
          Real zeta = 2 * exp(Real(j) * (j - 1) / 2 * r);
          if (j == 2) zeta = (std::min)(zeta, Real(4 * (exp(r) - 1)));
          sum += pow(Real(q), j) * binomial * zeta;
        }
        const double truth =
            std::fmin(static_cast<double>(log(sum)) / (alpha - 1), alpha / (2 * sigma * sigma));
        expect_just_above(rdp_fixed_size_wang(q, sigma, alpha), truth, 2e-11,
                          setting(q, sigma, alpha));
      }
  EXPECT_EQ(rdp_fixed_size(0.0, 1.0, 2.0), 0.0);
  expect_just_above(rdp_fixed_size(1.0, 2.0, 3.0), 3.0 / 8, 1e-14, "whole");
  EXPECT_TRUE(std::fabs(rdp_fixed_size(1 - 1e-13, 2.0, 3.5) / (3.5 / 8) - 1) <= 1e-10);
  EXPECT_TRUE(std::isfinite(rdp_fixed_size(1e-7, 1e-3, 100.5)));  // too long: Wang et al.
}

TEST(FixedSize, OfAMechanismByItsRelation) {
  const FixedSizeGaussian m{.n = 50000, .batch = 500, .sigma = 2.0};
  EXPECT_TRUE(std::fabs(rdp(m, 5.0, replaced) / rdp_fixed_size(0.01, 1.0, 5.0) - 1) <= 1e-12);
  // One more example: in the batch with 500 / 50001, and then another is not.
  const GaussianMixture mixture{{0.0, 2.0}, {1.0 - 500.0 / 50001, 500.0 / 50001}, 2.0};
  EXPECT_TRUE(std::fabs(rdp(m, 5.0) / rdp(mixture, 5.0) - 1) <= 1e-9);
}

TEST(PoissonLaplace, BoundsBothDirectionsByQuadrature) {
  for (const double q : {1e-3, 0.05, 0.6})
    for (const double scale : {0.3, 1.0, 10.0})
      for (const double alpha : {1.3, 2.0, 3.0, 7.5, 30.0}) {
        const Real e = 1 / Real(scale);
        const auto moment = [&](const Real& power) -> Real {
          const auto x = [&](const Real& z) -> Real {
            return 1 + Real(q) * (exp((2 * z - 1) * e) - 1);
          };
          Real sum = pow(x(0), power) / 2 + pow(x(1), power) * exp(-e) / 2;
          for (int i = 0; i < 8; ++i)
            sum += boost::math::quadrature::gauss<Real, 30>::integrate(
                [&](const Real& z) -> Real { return exp(-z * e) * e / 2 * pow(x(z), power); },
                Real(i) / 8, Real(i + 1) / 8);
          return sum;
        };
        const double forward = static_cast<double>(log(moment(alpha)) / (alpha - 1));
        const double backward = static_cast<double>(log(moment(1 - Real(alpha))) / (alpha - 1));
        const double found = rdp_poisson_laplace(q, scale, alpha);
        EXPECT_GE(found, backward) << setting(q, scale, alpha);
        if (alpha == std::floor(alpha)) {
          expect_just_above(found, forward, 2e-11, setting(q, scale, alpha));
        } else {
          EXPECT_TRUE(found >= forward && found <= 2 * forward) << setting(q, scale, alpha);
        }
      }
  EXPECT_EQ(rdp_poisson_laplace(1.0, 2.0, 3.0), rdp_laplace(2.0, 3.0));
  EXPECT_EQ(rdp_poisson_laplace(0.0, 2.0, 3.0), 0.0);
}

TEST(TruncatedPoisson, IsPoissonWhereNothingIsCutAndMoreWhereItIs) {
  for (const double alpha : {1.5, 3.0, 6.0}) {
    const double plain = rdp(PoissonGaussian{0.01, 1.0}, alpha);
    const double never_full = rdp(TruncatedPoissonGaussian{50000, 0.01, 5000, 1.0}, alpha);
    EXPECT_TRUE(std::fabs(never_full / plain - 1) <= 1e-8) << alpha;
    double before = never_full;
    for (const std::uint64_t batch : {600u, 560u, 520u}) {
      const double now = rdp(TruncatedPoissonGaussian{50000, 0.01, batch, 1.0}, alpha);
      EXPECT_GE(now, before * (1 - 1e-9)) << batch;
      before = now;
    }
    EXPECT_GT(before, plain);
  }
}

TEST(ReplacedInAPoissonSample, IsThePairOfTheWorstTwoExamples) {
  const double q = 0.02, sigma = 1.5, alpha = 4.5;
  const Normals plus{{0.0, 1.0}, {1 - q, q}}, minus{{-1.0, 0.0}, {q, 1 - q}};
  expect_just_above(rdp(PoissonGaussian{q, sigma}, alpha, replaced),
                    static_cast<double>(log_moment_of(plus, minus, sigma, alpha)) / (alpha - 1),
                    1e-9, "replaced");
  expect_just_above(rdp(Gaussian{sigma}, alpha, replaced), 2 * alpha / (sigma * sigma), 1e-14, "");
}

std::vector<Mechanism> many() {
  return {Gaussian{1.5},
          PoissonGaussian{0.01, 0.8},
          FixedSizeGaussian{5000, 500, 2.0},
          TruncatedPoissonGaussian{6000, 0.04, 300, 1.25},
          GaussianMixture{{0.0, 1.0, 2.5}, {0.9, 0.09, 0.01}, 0.7},
          Laplace{3.5},
          PoissonLaplace{0.25, 4.0},
          BoundedRange{0.125},
          ApproximateDp{0.5, 1e-9}};
}

TEST(Zcdp, BoundsEveryOrderOfEveryMechanism) {
  for (const Mechanism& mechanism : many())
    for (const double alpha : {1.001, 1.5, 2.0, 7.3, 40.0, 300.0})
      EXPECT_LE(rdp(mechanism, alpha), zcdp_of(mechanism) * alpha * (1 + 1e-10))
          << name(mechanism) << " " << alpha;
  EXPECT_TRUE(std::fabs(zcdp_of(BoundedRange{0.4}) / 0.02 - 1) <= 1e-14);
  EXPECT_EQ(zcdp_of(Gaussian{3.0}) >= 1.0 / 18, true);
  EXPECT_LT(zcdp_of(Laplace{1.0}), 0.5);
  EXPECT_GT(zcdp_of(Laplace{1.0}), 1.0 + std::exp(-1.0) - 1.0);  // its KL divergence
}

TEST(Zcdp, BudgetsAreUsedUpButNotExceeded) {
  for (const double epsilon : {1e-3, 0.3, 2.0, 50.0, 1e4})
    for (const double delta : {0.1, 1e-5, 1e-15}) {
      const double rho = zcdp_for(epsilon, delta);
      EXPECT_LE(epsilon_from_zcdp(rho, delta), epsilon);
      EXPECT_GT(epsilon_from_zcdp(rho * (1 + 1e-8), delta), epsilon * (1 - 1e-12));
    }
  EXPECT_THROW(zcdp_for(0.0, 1e-5), std::invalid_argument);
  EXPECT_THROW(zcdp_for(1.0, 1.0), std::invalid_argument);
}

TEST(MechanismRdp, GrowsWithTheOrder) {
  for (const Mechanism& mechanism : many()) {
    double before = 0.0;
    for (double alpha = 1.01; alpha < 600.0; alpha *= 1.17) {
      const double now = rdp(mechanism, alpha);
      EXPECT_TRUE(now >= before * (1 - 1e-10) && now > 0.0) << name(mechanism) << " " << alpha;
      before = now;
    }
  }
}

TEST(MechanismRdp, RefusesWhatItDoesNotKnow) {
  const Neighbours three{.relation = NeighbouringRelation::add_or_remove, .group = 3};
  const Neighbours nobody{.relation = NeighbouringRelation::add_or_remove, .group = 0};
  for (const Mechanism& m : {many()[3], many()[4], many()[6]}) {
    EXPECT_THROW(rdp(m, 2.0, three), std::domain_error) << name(m);
    EXPECT_THROW(rdp(m, 2.0, replaced), std::domain_error) << name(m);
  }
  const Neighbours pair_replaced{.relation = NeighbouringRelation::replace_one, .group = 2};
  EXPECT_THROW(rdp(many()[1], 2.0, pair_replaced), std::domain_error);
  EXPECT_THROW(rdp(many()[2], 2.0, pair_replaced), std::domain_error);
  EXPECT_THROW(failure_of(ApproximateDp{0.1, 1e-6}, three), std::domain_error);
  EXPECT_EQ(failure_of(ApproximateDp{0.1, 1e-6}), 1e-6);
  EXPECT_EQ(failure_of(Gaussian{1.0}), 0.0);
  for (const Mechanism& m : many()) {
    EXPECT_THROW(rdp(m, 1.0), std::invalid_argument);
    EXPECT_THROW(rdp(m, nan), std::invalid_argument);
    EXPECT_THROW(rdp(m, infinity), std::invalid_argument);
    EXPECT_THROW(rdp(m, 2.0, nobody), std::invalid_argument);
    EXPECT_THROW(zcdp_of(m, nobody), std::invalid_argument);
  }
  EXPECT_THROW(rdp(Laplace{0.0}, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp(BoundedRange{-1.0}, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_fixed_size(1.1, 1.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_fixed_size(0.1, 0.0, 2.0), std::invalid_argument);
  EXPECT_THROW(rdp_poisson_laplace(0.1, 1.0, 1e7), std::invalid_argument);
  EXPECT_EQ(rdp(PoissonGaussian{0.1, 1.0}, 1e7), infinity);
}

}  // namespace
}  // namespace cudp::privacy
