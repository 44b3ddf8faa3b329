// Privacy loss distributions against quadrature and closed forms: privacy/accountant.hpp with
// AccountantKind::pld, and the parts in privacy/pld/.
#include <cmath>
#include <complex>
#include <cstdint>
#include <future>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/math/quadrature/gauss.hpp>
#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/pld/composed_loss.hpp"
#include "privacy/pld/distinct_releases.hpp"
#include "privacy/pld/fft.hpp"
#include "privacy/pld/privacy_loss.hpp"
#include "privacy/rdp/binomial.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "tests/privacy/common.hpp"
#include "tests/privacy/oracle.hpp"
#include "tests/privacy/pld_oracle.hpp"

namespace cudp::privacy {
namespace {

PrivacyBound delta_by_pld(std::vector<Release> releases, NeighbouringRelation relation,
                          double epsilon, std::uint64_t group = 1) {
  return Accountant({.releases = std::move(releases), .relation = relation, .group = group}, by_pld)
      .delta(epsilon);
}

PrivacyBound epsilon_by_pld(std::vector<Release> releases, double delta, std::uint64_t group = 1) {
  return Accountant({.releases = std::move(releases), .group = group}, by_pld).epsilon(delta);
}

/// The truth lies between the two bounds, and they within `tolerance` of it, relatively.
void expect_around(const PrivacyBound& found, double truth, double tolerance,
                   const std::string& what) {
  EXPECT_TRUE(found.delta >= truth * (1 - 1e-11)) << what << ": " << found.delta << " < " << truth;
  EXPECT_TRUE(found.delta_lower <= truth * (1 + 1e-11))
      << what << ": " << found.delta_lower << " > " << truth;
  EXPECT_TRUE(found.delta <= truth * (1 + tolerance) + 1e-40)
      << what << ": " << found.delta << " against " << truth;
  EXPECT_TRUE(found.delta_lower >= truth * (1 - 4 * tolerance) - 1e-40)
      << what << ": " << found.delta_lower << " against " << truth;
}

oracle::Mixture binomial_mixture(std::uint64_t k, double q, double sigma) {
  oracle::Mixture mixture{.parts = {}, .sigma = sigma};
  for (std::uint64_t j = 0; j <= k; ++j) {
    double weight =
        std::pow(q, static_cast<double>(j)) * std::pow(1 - q, static_cast<double>(k - j));
    for (std::uint64_t i = 0; i < j; ++i)
      weight *= static_cast<double>(k - i) / static_cast<double>(j - i);
    mixture.parts.emplace_back(static_cast<double>(j), weight);
  }
  return mixture;
}

/// Bounds of compositions of one mechanism share the cells of its loss. Each is the same as alone,
/// to the last bit, whatever was computed before.
TEST(Pld, SharedCellsChangeNoBound) {
  const Mechanism step = PoissonGaussian{.q = 0.0314, .sigma = 1.37};
  const auto composed = [](const pld::PrivacyLoss& loss, std::uint64_t count, double coarseness) {
    std::vector<pld::DistinctLoss> losses;
    losses.push_back({.above = loss, .below = {}, .same = true, .count = count});
    return pld::ComposedLoss(std::move(losses), {.coarseness = coarseness});
  };
  for (const Change change : {Change::add, Change::remove, Change::replace})
    for (const std::uint64_t group : {1, 3}) {
      if (change == Change::replace && group > 1) continue;
      for (const std::uint64_t count : {640, 32, 320, 1, 640}) {
        for (const double coarseness : {10.0, 1.0})
          for (const double delta : {1e-5, 1e-9}) {
            const PrivacyBound alone =
                composed(pld::privacy_loss(step, change, group), count, coarseness).epsilon(delta);
            const PrivacyBound shared =
                composed(pld::known_privacy_loss(step, change, group), count, coarseness)
                    .epsilon(delta);
            EXPECT_EQ(shared.epsilon, alone.epsilon) << count << " steps, group " << group;
            EXPECT_EQ(shared.epsilon_lower, alone.epsilon_lower) << count << " steps";
            EXPECT_EQ(shared.interval, alone.interval) << count << " steps";
          }
      }
    }
}

/// Other threads divide the same cells at the same time.
TEST(Pld, SharedCellsOfManyThreadsChangeNoBound) {
  const Mechanism step = PoissonGaussian{.q = 0.0271, .sigma = 0.91};
  const auto epsilon_of = [&](const pld::PrivacyLoss& loss, std::uint64_t count, double delta) {
    std::vector<pld::DistinctLoss> losses;
    losses.push_back({.above = loss, .below = {}, .same = true, .count = count});
    return pld::ComposedLoss(std::move(losses), {}).epsilon(delta).epsilon;
  };
  std::vector<std::future<std::vector<double>>> found;
  const auto all_counts = [&](bool shared) {
    std::vector<double> all;
    for (std::uint64_t count = 1; count < 3000; count *= 3)
      for (const double delta : {1e-3, 1e-12})
        all.push_back(epsilon_of(shared ? pld::known_privacy_loss(step, Change::remove, 1)
                                        : pld::privacy_loss(step, Change::remove, 1),
                                 count, delta));
    return all;
  };
  found.reserve(4);
  for (int thread = 0; thread < 4; ++thread)
    found.push_back(std::async(std::launch::async, all_counts, true));
  const std::vector<double> alone = all_counts(false);
  for (auto& one : found) EXPECT_EQ(one.get(), alone);
}

TEST(Pld, OneStepByQuadrature) {
  for (const double q : {0.001, 0.05, 0.7})
    for (const double sigma : {0.4, 1.0, 5.0})
      for (const std::uint64_t k : {1u, 3u, 8u}) {
        const oracle::Mixture mixed = binomial_mixture(k, q, sigma);
        const oracle::Mixture zero{.parts = {{0.0, 1.0}}, .sigma = sigma};
        for (const NeighbouringRelation relation :
             {NeighbouringRelation::add, NeighbouringRelation::remove}) {
          Accountant accountant(
              {.releases = {{PoissonGaussian{q, sigma}, 1}}, .relation = relation, .group = k},
              by_pld);
          const bool removed = relation == NeighbouringRelation::remove;
          const auto truth = [&](double epsilon) {
            return static_cast<double>(
                oracle::delta_of_one(removed ? mixed : zero, removed ? zero : mixed, epsilon));
          };
          for (const double epsilon : {0.0, 0.02, 0.5, 2.0, 9.0}) {
            const PrivacyBound found = accountant.delta(epsilon);
            const std::string what = std::string(name(relation)) + " q " + std::to_string(q) +
                                     " sigma " + std::to_string(sigma) + " k " + std::to_string(k) +
                                     " epsilon " + std::to_string(epsilon);
            // One interval, or a two-thousandth, of epsilon to either side.
            const double margin = 1e-4 + 5e-4 * epsilon, exact = truth(epsilon);
            EXPECT_TRUE(found.delta >= exact * (1 - 1e-11)) << what;
            EXPECT_TRUE(found.delta_lower <= exact * (1 + 1e-11)) << what;
            EXPECT_TRUE(found.delta <= truth(epsilon - margin) * (1 + 2e-3) + 1e-24)
                << what << ": " << found.delta << " against " << exact;
            EXPECT_TRUE(found.delta_lower >= truth(epsilon + margin) * (1 - 3e-3) - 1e-24)
                << what << ": " << found.delta_lower << " against " << exact;
          }
        }
      }
}

TEST(Pld, TwoStepsByQuadrature) {
  struct Case {
    double q, sigma;
    std::uint64_t k;
    double epsilon;
  };
  for (const Case& c : {Case{0.1, 1.0, 1, 0.5}, Case{0.02, 0.6, 2, 1.5}, Case{0.5, 2.0, 4, 1.0},
                        Case{0.001, 0.8, 1, 3.0}}) {
    const oracle::Mixture mixed = binomial_mixture(c.k, c.q, c.sigma);
    const oracle::Mixture zero{.parts = {{0.0, 1.0}}, .sigma = c.sigma};
    const std::vector<Release> releases{{PoissonGaussian{c.q, c.sigma}, 2}};
    const double remove = oracle::delta_of_two(mixed, zero, c.epsilon);
    const double add = oracle::delta_of_two(zero, mixed, c.epsilon);
    const std::string what = "q " + std::to_string(c.q);
    expect_around(delta_by_pld(releases, NeighbouringRelation::remove, c.epsilon, c.k), remove,
                  1e-3, what);
    if (add > 1e-20)
      expect_around(delta_by_pld(releases, NeighbouringRelation::add, c.epsilon, c.k), add, 1e-3,
                    what + " add");
    // The same two releases as two entries.
    const std::vector<Release> apart{{PoissonGaussian{c.q, c.sigma}, 1},
                                     {PoissonGaussian{c.q * (1 + 1e-15), c.sigma}, 1}};
    expect_around(delta_by_pld(apart, NeighbouringRelation::remove, c.epsilon, c.k), remove, 1e-3,
                  what + " apart");
  }
}

TEST(Pld, ReplacingOneByQuadrature) {
  for (const double q : {0.01, 0.3})
    for (const double epsilon : {0.0, 0.3, 2.0}) {
      const oracle::Mixture p{.parts = {{0.0, 1 - q}, {1.0, q}}, .sigma = 0.9};
      const oracle::Mixture m{.parts = {{-1.0, q}, {0.0, 1 - q}}, .sigma = 0.9};
      const auto truth = static_cast<double>(oracle::delta_of_one(p, m, epsilon));
      expect_around(
          delta_by_pld({{PoissonGaussian{q, 0.9}, 1}}, NeighbouringRelation::replace_one, epsilon),
          truth, 1e-3, "q " + std::to_string(q));
    }
}

TEST(Pld, GaussiansAreExact) {
  for (const double sigma : {0.05, 0.7, 20.0, 3000.0})
    for (const std::uint64_t steps : {1u, 30u, 100'000u})
      for (const double delta : {0.2, 1e-2, 1e-6, 1e-15}) {
        const double mu = std::sqrt(static_cast<double>(steps)) / sigma;
        const double truth = gaussian_epsilon(mu, delta);
        const PrivacyBound found = epsilon_by_pld({{Gaussian{sigma}, steps}}, delta);
        EXPECT_TRUE(found.epsilon >= truth * (1 - 1e-11)) << sigma << " " << steps << " " << delta;
        EXPECT_TRUE(found.epsilon <= truth * (1 + 3e-4) + 1e-9 * mu)
            << sigma << " " << steps << " " << delta << ": " << found.epsilon << " " << truth;
        EXPECT_TRUE(found.epsilon_lower <= truth * (1 + 1e-11) &&
                    found.epsilon_lower >= truth * (1 - 2e-3) - 1e-9 * mu)
            << sigma << " " << steps << " " << delta << ": " << found.epsilon_lower << " " << truth;
      }
}

TEST(Gaussian, AgreesWithTheOracle) {
  for (const double sigma : {0.1, 1.0, 30.0})
    for (const double epsilon : {0.0, 0.01, 1.0, 8.0}) {
      const double truth = oracle::gaussian_delta(sigma, epsilon);
      const double found = gaussian_delta(1.0 / sigma, epsilon);
      EXPECT_TRUE(found >= truth && (found <= truth * (1 + 1e-9) || truth < 1e-200)) << sigma;
    }
}

TEST(Pld, RandomisedResponseComposesAsInTheBook) {
  // Kairouz, Oh, Viswanath 2015, Theorem 3.3: delta at (n - 2 i) epsilon.
  const double epsilon = 0.3;
  const int n = 20;
  const double high = 1 / (1 + std::exp(-epsilon)), low = 1 - high;
  for (const int target : {0, 2, 6, 12, 18}) {
    double truth = 0.0;
    for (int j = 0; j <= n; ++j) {
      const double loss = (n - 2 * j) * epsilon,
                   binomial =
                       std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1));
      const double p = binomial * std::pow(high, n - j) * std::pow(low, j);
      if (loss > target * epsilon) truth += p * (1 - std::exp(target * epsilon - loss));
    }
    expect_around(delta_by_pld({{ApproximateDp{epsilon, 0.0}, n}},
                               NeighbouringRelation::add_or_remove, target * epsilon),
                  truth, 1e-3, "rr " + std::to_string(target));
  }
}

TEST(Pld, BoundedRangeOfOneAndTwo) {
  const double range = 0.8, whole = 1 - std::exp(-range);
  const auto one = [&](double epsilon) {
    if (epsilon >= range) return 0.0;
    if (epsilon <= -range) return 1 - std::exp(epsilon);
    return std::pow(1 - std::exp((epsilon - range) / 2), 2) / whole;
  };
  for (const double epsilon : {0.0, 0.2, 0.7}) {
    expect_around(
        delta_by_pld({{BoundedRange{range}, 1}}, NeighbouringRelation::add_or_remove, epsilon),
        one(epsilon), 1e-3, "one");
    double two = 0.0;
    for (int i = 0; i < 400; ++i)
      two += boost::math::quadrature::gauss<double, 7>::integrate(
          [&](double loss) {
            return std::exp((loss - range) / 2) / 2 / whole * one(epsilon - loss);
          },
          -range + 2 * range * i / 400, -range + 2 * range * (i + 1) / 400);
    expect_around(
        delta_by_pld({{BoundedRange{range}, 2}}, NeighbouringRelation::add_or_remove, epsilon), two,
        1e-3, "two");
  }
}

TEST(Pld, NoFloorAtSmallDeltas) {
  const std::vector<Release> releases{{PoissonGaussian{0.01, 1.0}, 2000}};
  double last = 0.0;
  for (const double delta : {1e-5, 1e-10, 1e-15, 1e-20, 1e-30}) {
    const PrivacyBound found = epsilon_by_pld(releases, delta);
    EXPECT_TRUE(found.epsilon > last && found.epsilon < 12.0) << delta << " " << found.epsilon;
    EXPECT_TRUE(found.epsilon_lower > found.epsilon * (1 - 2e-3)) << delta;
    last = found.epsilon;
    const PrivacyBound back = Accountant({.releases = releases}, by_pld).delta(last);
    EXPECT_TRUE(std::fabs(std::log(back.delta / delta)) < 0.02) << delta << " " << back.delta;
  }
}

TEST(Pld, ExtremesStayFiniteAndOrdered) {
  for (const double q : {1e-7, 1e-3, 0.3, 1.0})
    for (const double sigma : {0.05, 0.5, 50.0})
      for (const std::uint64_t steps : {1u, 3000u, 10'000'000u}) {
        if (steps > 1'000'000 && (q < 1e-6 || sigma < 0.1)) continue;  // covered by shorter ones
        const PrivacyBound found = epsilon_by_pld({{PoissonGaussian{q, sigma}, steps}}, 1e-9);
        EXPECT_TRUE(found.epsilon >= 0.0 &&
                    found.epsilon < std::numeric_limits<double>::infinity() &&
                    found.epsilon_lower <= found.epsilon)
            << q << " " << sigma << " " << steps << ": " << found.epsilon;
      }
}

TEST(Pld, RareStepsWithLittleNoise) {
  // Nearly all the probability is at one loss, and what delta is about lies far above it.
  for (const auto& [q, sigma, delta] :
       {std::tuple{1e-7, 0.1, 1e-8}, {1e-7, 0.1, 5e-8}, {1e-6, 0.1, 1e-7}, {1e-5, 0.15, 1e-6}}) {
    const oracle::Mixture without{.parts = {{0.0, 1.0}}, .sigma = sigma};
    const oracle::Mixture with{.parts = {{0.0, 1.0 - q}, {1.0, q}}, .sigma = sigma};
    const PrivacyBound found = Accountant({.releases = {{PoissonGaussian{q, sigma}, 1}},
                                           .relation = NeighbouringRelation::remove},
                                          by_pld)
                                   .epsilon(delta);
    const auto truth = [&](double epsilon) {
      return static_cast<double>(oracle::delta_of_one(with, without, oracle::Wide(epsilon)));
    };
    EXPECT_TRUE(truth(found.epsilon) <= delta * (1 + 1e-9)) << q << ": " << found.epsilon;
    EXPECT_TRUE(truth(found.epsilon_lower) >= delta * (1 - 1e-9))
        << q << ": " << found.epsilon_lower;
    EXPECT_TRUE(found.epsilon_lower > found.epsilon * (1 - 1e-4))
        << q << ": " << found.epsilon_lower;
  }
  // Where it is likely that nobody is ever seen, delta alone is enough; else an example seen once.
  EXPECT_EQ(epsilon_by_pld({{PoissonGaussian{9e-10, 0.084}, 10'000'000}}, 0.01).epsilon, 0.0);
  const PrivacyBound once = epsilon_by_pld({{PoissonGaussian{1e-7, 0.1}, 1000}}, 1e-5);
  EXPECT_NEAR(once.epsilon, 45.7609, 1e-3);
  EXPECT_NEAR(once.epsilon_lower, 45.7609, 1e-3);
}

TEST(Pld, LittleNoiseAndManyStepsTakeACoarserGrid) {
  // An example is seen in about half of the steps, at a loss of 1 / (2 sigma^2) = 200 and more.
  const PrivacyBound found = epsilon_by_pld({{PoissonGaussian{0.5, 0.05}, 10'000'000}}, 1e-6);
  EXPECT_TRUE(found.epsilon > 0.99e9 && found.epsilon < 1.05e9) << found.epsilon;
  EXPECT_GT(found.interval, 1.0);
}

TEST(Fft, ErrorsStayWithinTheBound) {
  std::mt19937_64 bits(11);
  std::normal_distribution<> normal;
  for (const std::size_t n : {4u, 8u, 64u, 512u}) {
    const pld::Fft fft(n);
    std::vector<double> x(n), back(n);
    for (double& value : x) value = normal(bits);
    std::vector<std::complex<double>> y(fft.frequencies());
    fft.forward(x, y);
    long double error = 0, size = 0;
    for (std::size_t k = 0; k < n; ++k) {
      std::complex<long double> sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const long double angle = -2 * 3.14159265358979323846264338327950288L *
                                  static_cast<long double>(i * k % n) / static_cast<long double>(n);
        sum += static_cast<long double>(x[i]) *
               std::complex<long double>(std::cos(angle), std::sin(angle));
      }
      const std::complex<double> found = k <= n / 2 ? y[k] : std::conj(y[n - k]);
      error += std::norm(std::complex<long double>(found) - sum);
      size += std::norm(sum);
    }
    EXPECT_TRUE(std::sqrt(error / size) <= fft.relative_error()) << n;
    fft.inverse(y, back);
    long double round_trip = 0, whole = 0;
    for (std::size_t i = 0; i < n; ++i) {
      round_trip += (back[i] - x[i]) * (back[i] - x[i]);
      whole += x[i] * x[i];
    }
    EXPECT_TRUE(std::sqrt(round_trip / whole) <= 2.1 * fft.relative_error()) << n;
  }
}

TEST(Binomial, AgreesWithSums) {
  const std::vector<double> weights = hypergeometric_weights(3, 5, 2);  // 3 of 5 white + 2 black
  EXPECT_NEAR(weights[0], 10.0 / 35.0, 1e-15);
  EXPECT_NEAR(weights[1], 20.0 / 35.0, 1e-15);
  EXPECT_NEAR(weights[2], 5.0 / 35.0, 1e-15);
  for (const std::uint64_t least : {0u, 1u, 3u, 7u, 10u, 11u}) {
    double tail = 0.0;
    const std::vector<double> all = binomial_weights(10, 0.3);
    for (std::uint64_t j = least; j <= 10; ++j) tail += all[j];
    const double found = binomial_tail(10, 0.3, least);
    EXPECT_TRUE(found >= tail * (1 - 1e-14) && found <= tail * (1 + 1e-8) + 1e-300) << least;
  }
  // Far out of a large one: by the sum of its terms.
  double term = std::exp(std::lgamma(1e6 + 1) - std::lgamma(10701.0) - std::lgamma(989301.0) +
                         10700 * std::log(0.01) + 989300 * std::log1p(-0.01));
  double tail = 0.0;
  for (int j = 10700; j < 14000; ++j) {
    tail += term;
    term *= (1e6 - j) / (j + 1.0) * (0.01 / 0.99);
  }
  EXPECT_NEAR(binomial_tail(1'000'000, 0.01, 10700) / tail, 1.0, 1e-6);
}

/// log of P(N(0, 1) > z), by its continued fraction where erfc is no number any more.
double log_normal_tail(double z) {
  if (z < 25.0) return std::log(0.5 * std::erfc(z / std::numbers::sqrt2));
  double fraction = z;
  for (int k = 60; k > 0; --k) fraction = z + k / fraction;
  return -0.5 * z * z - std::log(fraction) - 0.5 * std::log(2.0 * std::numbers::pi);
}

/// Delta of one removed example at epsilon, of one step: P = (1 - q) N(0) + q N(1) against N(0).
double exact_delta(double q, double sigma, double epsilon) {
  // log(1 - q + q e^((2 x - 1) / (2 sigma^2))) = epsilon
  const double rise =
      epsilon > 50.0 ? epsilon - std::log(q) : std::log((std::exp(epsilon) - 1.0 + q) / q);
  const double x = sigma * sigma * rise + 0.5;
  const double p = (1.0 - q) * std::exp(log_normal_tail(x / sigma)) +
                   q * std::exp(log_normal_tail((x - 1.0) / sigma));
  return p - std::exp(epsilon + log_normal_tail(x / sigma));
}

/// Losses of a step beyond e^709: sigma 0.02 at q = 0.1 was once certified with epsilon 0.1.
TEST(Pld, NoiseThatIsNextToNothingIsBoundedToo) {
  for (const double sigma : {0.001, 0.01, 0.02, 0.024, 0.026, 0.03, 0.1, 1.0})
    for (const double q : {1e-3, 0.1, 0.999})
      for (const double delta : {1e-3, 1e-9}) {
        Composition one{.releases = {{PoissonGaussian{.q = q, .sigma = sigma}, 1}}};
        const double epsilon = Accountant(one, by_pld).epsilon(delta).epsilon;
        EXPECT_LE(exact_delta(q, sigma, epsilon), delta * (1.0 + 1e-9))
            << "q " << q << " sigma " << sigma << " delta " << delta << " epsilon " << epsilon;
        for (const AccountantKind other : {AccountantKind::rdp, AccountantKind::best}) {
          const double found = Accountant(one, {.kind = other}).epsilon(delta).epsilon;
          EXPECT_LE(exact_delta(q, sigma, found), delta * (1.0 + 1e-9)) << name(other) << found;
        }
        if (q > delta) {
          EXPECT_GE(exact_delta(q, sigma, 0.999 * epsilon - 0.01), delta * (1.0 - 1e-9))
              << "too large: q " << q << " sigma " << sigma << " delta " << delta;
        }
        // More steps are never better.
        one.releases[0].count = 60;
        EXPECT_GE(Accountant(one, by_pld).epsilon(delta).epsilon, epsilon * (1.0 - 1e-6));
      }
}

/// The exact curve of a group of k is that of noise sigma / k.
TEST(Pld, GroupsWithNextToNoNoiseAreBoundedToo) {
  for (const double sigma : {0.01, 0.1})
    for (const std::uint64_t k : {2u, 16u}) {
      const Composition group{.releases = {{PoissonGaussian{.q = 0.01, .sigma = sigma}, 10}},
                              .group = k};
      Composition one = group;
      one.group = 1;
      EXPECT_GT(Accountant(group, by_pld).epsilon(1e-5).epsilon,
                Accountant(one, by_pld).epsilon(1e-5).epsilon);
    }
}

TEST(Pld, LaplaceNoiseThatIsNextToNothingIsBoundedOrRefused) {
  for (const double scale : {1e-4, 0.001, 0.0014, 0.002, 0.1}) {
    double epsilon = 0.0;
    try {
      epsilon = Accountant({.releases = {{Laplace{scale}, 1}}}, by_pld).epsilon(1e-9).epsilon;
    } catch (const std::domain_error&) {
      EXPECT_LT(scale, 0.01);
      continue;
    }
    EXPECT_GE(epsilon, (1.0 / scale) * (1.0 - 1e-6) - 1e-8 * 2.0 / scale) << scale;
    EXPECT_LE(epsilon, 1.0 / scale * (1.0 + 1e-4) + 1e-3) << scale;
  }
}

TEST(Pld, LossesWithinOneIntervalHaveALowerBound) {
  // One release of Laplace noise: delta = 1 - e^((epsilon - 1/scale) / 2).
  for (const double scale : {1e3, 1e5, 1e7, 1e9})
    for (const double part : {0.0, 0.3, 0.9}) {
      const double epsilon = part / scale, truth = -std::expm1(0.5 * (epsilon - 1.0 / scale));
      const PrivacyBound found =
          delta_by_pld({{Laplace{scale}, 1}}, NeighbouringRelation::add_or_remove, epsilon);
      EXPECT_GE(found.delta, truth) << scale << ", " << part;
      EXPECT_LE(found.delta_lower, truth) << scale << ", " << part;
    }
}

TEST(DistinctLosses, NumbersOfReleasesDoNotOverflow) {
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  const auto total = [](const std::vector<Release>& releases, std::size_t max_groups) {
    double sum = 0.0;
    for (const auto& loss : pld::distinct_losses(releases, Change::add, 1, max_groups))
      sum += static_cast<double>(loss.count);
    return sum;
  };
  const PoissonGaussian step{.q = 0.01, .sigma = 1.0}, similar{.q = 0.01, .sigma = 1.0 + 1e-9};
  const Gaussian other{50.0};
  EXPECT_EQ(total({{step, half}, {other, 1}, {step, half}, {step, half}}, 256), 3 * 0x1p63);
  EXPECT_EQ(total({{step, half}, {other, 1}, {similar, half}}, 2), 0x1p64);
  EXPECT_EQ(total({{Laplace{9.0}, half}, {other, 1}, {Laplace{9.0}, half}}, 256), 0x1p64);
}

}  // namespace
}  // namespace cudp::privacy
