// The loss of an epoch of random allocation, against golden values, quadrature and brute force.
#include "privacy/pld/allocation.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <future>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "privacy/calibrate.hpp"
#include "privacy/filter.hpp"
#include "privacy/pld/composed_loss.hpp"
#include "privacy/pld/distinct_releases.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "tests/privacy/common.hpp"
#include "tests/support/test_files.hpp"

namespace cudp::privacy {
namespace {

using pld::AllocationGrid;
using pld::AllocationTable;
using pld::Side;

/// Both bounds of epochs in one direction, at a given size of the tables.
pld::ComposedLoss composed(const AllocatedGaussian& epoch, std::uint64_t epochs, Change change,
                           const AllocationGrid& grid) {
  std::vector<pld::DistinctLoss> losses;
  losses.push_back({.above = allocation_loss(epoch, change, 1, Side::above, grid),
                    .below = allocation_loss(epoch, change, 1, Side::below, grid),
                    .same = false,
                    .count = epochs});
  return {std::move(losses), {}};
}

PrivacyBound epsilon_in(const AllocatedGaussian& epoch, std::uint64_t epochs, Change change,
                        double delta, std::size_t points = 1000) {
  const double cut = 1e-7 * delta / static_cast<double>(epochs);
  return composed(epoch, epochs, change, {.points = points, .cut = cut}).epsilon(delta);
}

PrivacyBound delta_in(const AllocatedGaussian& epoch, std::uint64_t epochs, Change change,
                      double epsilon, const AllocationGrid& grid) {
  return composed(epoch, epochs, change, grid).delta(epsilon);
}

/// The quadratures below share no code with the tables: they integrate all steps of an epoch but
/// one by the trapezoidal rule, and that one in closed form.
class Quadrature {
 public:
  Quadrature(double sigma, double step) : sigma_(sigma), step_(step) {
    for (double z = -10.0; z <= 10.0 + 1.0 / sigma; z += step) {
      ratios_.push_back(std::exp(z / sigma - 0.5 / (sigma * sigma)));
      weights_.push_back(step * std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi));
    }
  }

  /// E over the sum of `others` independent ratios W of f(sum).
  double expect(int others, const std::function<double(double)>& f, double sum = 0.0) const {
    if (others == 0) return f(sum);
    double total = 0.0;
    for (std::size_t i = 0; i < ratios_.size(); ++i)
      total += weights_[i] * expect(others - 1, f, sum + ratios_[i]);
    return total;
  }

  /// delta of one epoch at e^epsilon = c, which may be any positive number.
  double remove(int steps, double c) const {
    return expect(steps - 1, [&](double others) { return call(steps * c - others) / steps; });
  }
  double add(int steps, double c) const {
    return expect(steps - 1, [&](double others) { return put(steps / c - others) * c / steps; });
  }
  /// delta of two epochs of two steps.
  double remove_twice(double c) const {
    return expect(2, [&](double sum) { return 0.5 * sum * remove(2, c / (0.5 * sum)); });
  }
  double add_twice(double c) const {
    return expect(2, [&](double sum) { return add(2, c * 0.5 * sum); });
  }
  /// delta of one epoch of three steps, of which an example is used in two.
  double remove_two_of_three(double c) const {
    return expect_pair(
        [&](double sum, double product) { return sum / 3.0 * call((3.0 * c - product) / sum); });
  }
  double add_two_of_three(double c) const {
    return expect_pair(
        [&](double sum, double product) { return c * sum / 3.0 * put((3.0 / c - product) / sum); });
  }

 private:
  /// E f(W + W', W W').
  double expect_pair(const std::function<double(double, double)>& f) const {
    double total = 0.0;
    for (std::size_t i = 0; i < ratios_.size(); ++i)
      for (std::size_t j = 0; j < ratios_.size(); ++j)
        total += weights_[i] * weights_[j] * f(ratios_[i] + ratios_[j], ratios_[i] * ratios_[j]);
    return total;
  }
  static double above(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }
  double at(double w) const { return sigma_ * std::log(w) + 0.5 / sigma_; }
  /// E (W - k)_+ and E (k - W)_+.
  double call(double k) const {
    if (k <= 0.0) return 1.0 - k;
    return above(at(k) - 1.0 / sigma_) - k * above(at(k));
  }
  double put(double k) const {
    if (k <= 0.0) return 0.0;
    return k * above(-at(k)) - above(1.0 / sigma_ - at(k));
  }

  double sigma_, step_;
  std::vector<double> ratios_, weights_;
};

struct OneEpoch {
  double sigma;
  int steps;
  double epsilon;
};

TEST(Allocation, LiesAroundTheTruthOfTwoAndThreeSteps) {
  for (const OneEpoch& c : {OneEpoch{1.0, 2, 3.0}, OneEpoch{0.5, 2, 5.0}, OneEpoch{2.0, 2, 0.5},
                            OneEpoch{1.0, 3, 2.0}, OneEpoch{0.7, 3, 4.0}, OneEpoch{1.0, 2, 0.0}}) {
    const Quadrature truth(c.sigma, c.steps == 2 ? 0.01 : 0.04);
    const double e = std::exp(c.epsilon);
    const double removed = truth.remove(c.steps, e), added = truth.add(c.steps, e);
    const AllocatedGaussian epoch{static_cast<std::uint64_t>(c.steps), c.sigma};
    for (const AllocationGrid& grid :
         {AllocationGrid{.points = 1000, .cut = 1e-20}, AllocationGrid{.points = 200, .cut = 1e-20},
          AllocationGrid{.points = 200, .cut = 1e-4}}) {
      const std::string where = "sigma " + std::to_string(c.sigma) + ", " +
                                std::to_string(c.steps) + " steps, epsilon " +
                                std::to_string(c.epsilon) + ", cut " + std::to_string(grid.cut);
      const PrivacyBound remove = delta_in(epoch, 1, Change::remove, c.epsilon, grid);
      const PrivacyBound add = delta_in(epoch, 1, Change::add, c.epsilon, grid);
      EXPECT_LE(remove.delta_lower, removed * (1 + 1e-9)) << where;
      EXPECT_GE(remove.delta, removed * (1 - 1e-9)) << where;
      EXPECT_LE(add.delta_lower, added * (1 + 1e-9)) << where;
      EXPECT_GE(add.delta, added * (1 - 1e-9)) << where;
      if (grid.points < 1000) continue;
      EXPECT_LE(remove.delta - remove.delta_lower, 2e-2 * removed) << where;
      EXPECT_LE(add.delta - add.delta_lower, 4e-2 * added) << where;
    }
  }
}

TEST(Allocation, LiesAroundTheTruthOfTwoEpochs) {
  const Quadrature truth(1.0, 0.125);
  for (const double epsilon : {1.0, 3.0}) {
    const double removed = truth.remove_twice(std::exp(epsilon));
    const double added = truth.add_twice(std::exp(epsilon));
    for (const double cut : {1e-20, 1e-4}) {
      const AllocationGrid grid{.points = 600, .cut = cut};
      const PrivacyBound remove = delta_in({2, 1.0}, 2, Change::remove, epsilon, grid);
      const PrivacyBound add = delta_in({2, 1.0}, 2, Change::add, epsilon, grid);
      EXPECT_LE(remove.delta_lower, removed * (1 + 1e-9));
      EXPECT_GE(remove.delta, removed * (1 - 1e-9));
      EXPECT_LE(add.delta_lower, added * (1 + 1e-9));
      EXPECT_GE(add.delta, added * (1 - 1e-9));
      if (cut > 1e-10) continue;
      EXPECT_LE(remove.delta - remove.delta_lower, 2e-2 * removed);
      EXPECT_LE(add.delta - add.delta_lower, 3e-2 * added);
    }
  }
}

TEST(Allocation, SeveralUsesAreBoundedByPartsOfAnEpoch) {
  EXPECT_EQ(pld::allocated_uses(12, 3, 2.0, 5),
            (std::vector<Release>{{AllocatedGaussian{4, 2.0}, 15}}));
  EXPECT_EQ(
      pld::allocated_uses(11, 3, 2.0, 5),
      (std::vector<Release>{{AllocatedGaussian{3, 2.0}, 5}, {AllocatedGaussian{4, 2.0}, 10}}));
  EXPECT_EQ(pld::allocated_uses(7, 1, 2.0, 5),
            (std::vector<Release>{{AllocatedGaussian{7, 2.0}, 5}}));
  EXPECT_EQ(pld::allocated_uses(3, 3, 2.0, 1),
            (std::vector<Release>{{AllocatedGaussian{1, 2.0}, 3}}));
  EXPECT_THROW(pld::allocated_uses(3, 4, 2.0, 1), std::invalid_argument);
  EXPECT_THROW(pld::allocated_uses(3, 0, 2.0, 1), std::invalid_argument);
  for (const double sigma : {0.7, 1.0, 2.0}) {
    const Quadrature truth(sigma, 0.05);
    Accountant parts({.releases = pld::allocated_uses(3, 2, sigma, 1)});
    Accountant open({.releases = {{Gaussian{sigma}, 2}}});
    for (const double epsilon : {0.0, 0.5, 1.5, 3.0}) {
      const std::string where =
          "sigma " + std::to_string(sigma) + ", epsilon " + std::to_string(epsilon);
      const double removed = truth.remove_two_of_three(std::exp(epsilon));
      const double added = truth.add_two_of_three(std::exp(epsilon));
      const PrivacyBound bound = parts.delta(epsilon);
      EXPECT_GE(*bound.delta_remove, removed) << where;
      EXPECT_GE(*bound.delta_add, added) << where;
      // Without secret places an example would be used in two known steps.
      EXPECT_LE(bound.delta, open.delta(epsilon).delta) << where;
    }
  }
}

TEST(Allocation, OfOneStepIsTheGaussianMechanismExactly) {
  const Release allocated{AllocatedGaussian{1, 1.25}, 7}, plain{Gaussian{1.25}, 7};
  constexpr Neighbours kCases[] = {{NeighbouringRelation::add_or_remove, 1},
                                   {NeighbouringRelation::add_or_remove, 3},
                                   {NeighbouringRelation::replace_one, 1}};
  for (const Neighbours& n : kCases)
    for (const AccountantKind kind :
         {AccountantKind::best, AccountantKind::pld, AccountantKind::rdp}) {
      const auto epsilon = [&](const Release& release) {
        return Accountant({.releases = {release}, .relation = n.relation, .group = n.group},
                          {.kind = kind})
            .epsilon(1e-5)
            .epsilon;
      };
      EXPECT_NEAR(epsilon(allocated) / epsilon(plain), 1.0,
                  kind == AccountantKind::rdp ? 1e-12 : 0.0);
    }
  // The table agrees, too.
  for (const double sigma : {0.5, 1.0, 4.0})
    for (const Change change : {Change::add, Change::remove}) {
      const PrivacyBound found = epsilon_in({1, sigma}, 3, change, 1e-6);
      const double exact = gaussian_epsilon(std::sqrt(3.0) / sigma, 1e-6);
      EXPECT_LE(found.epsilon_lower, exact);
      EXPECT_GE(found.epsilon, exact * (1 - 1e-9));
      EXPECT_LE(found.epsilon - found.epsilon_lower, 2e-3 * exact);
    }
}

TEST(Allocation, TablesKeepMassAndMean) {
  for (const std::uint64_t steps : {2u, 7u, 118u, 1000u})
    for (const double sigma : {0.3, 1.0, 20.0})
      for (const double cut : {1e-100, 1e-20, 1e-3}) {
        const AllocationGrid grid{.points = 128, .cut = cut};
        const AllocationTable above = allocation_table({steps, sigma}, Side::above, grid);
        const AllocationTable below = allocation_table({steps, sigma}, Side::below, grid);
        const auto sums = [](const AllocationTable& table) {
          double mass = 0.0, mean = 0.0;
          for (std::size_t i = 0; i < table.points.size(); ++i) {
            mass += table.mass[i];
            mean += table.mass[i] * table.points[i];
          }
          return std::pair{mass, mean};
        };
        const auto [mass_above, mean_above] = sums(above);
        const auto [mass_below, mean_below] = sums(below);
        const auto t = static_cast<double>(steps);
        EXPECT_TRUE(std::ranges::is_sorted(above.points));
        EXPECT_TRUE(std::ranges::is_sorted(below.points));
        EXPECT_LT(above.mass_error, 1e-8);
        EXPECT_LT(above.point_error, 1e-10);
        EXPECT_LT(below.point_error, 1e-10);
        EXPECT_NEAR(mass_below, 1.0, below.mass_error + below.point_error);
        EXPECT_NEAR(mean_below / t, 1.0, below.mass_error + below.point_error);
        // From above, what is left out is not lost, and is counted twice at the lower end.
        EXPECT_GE(mass_above * (1.0 + above.mass_error), 1.0);
        EXPECT_LE(mass_above, 1.0 + 2.0 * t * cut + 1e-9);
        EXPECT_GE((mean_above + above.excess) * (1.0 + above.mass_error + above.point_error), t);
        EXPECT_LE((mean_above + above.excess) / t, 1.0 + 4.0 * t * cut + 1e-9);
        EXPECT_LE(above.excess / t, 40.0 * cut);
      }
}

TEST(Allocation, SumsBoundAllPairsOfTheirTermsInConvexOrder) {
  for (const double sigma : {0.5, 1.0, 5.0})
    for (const double cut : {1e-12, 1e-3})
      for (const Side side : {Side::above, Side::below}) {
        const AllocationGrid grid{.points = 64, .cut = cut};
        const AllocationTable term = allocation_table({1, sigma}, side, grid);
        const AllocationTable sum = allocation_table({2, sigma}, side, grid);
        double mass = 0.0;
        for (const double m : term.mass) mass += m;
        // Functions a + b x + (x - bend)_+ and a + (bend - x)_+.
        const auto check = [&](double constant, double slope, double bend, bool rises) {
          const auto f = [&](double x) {
            return constant + slope * x + std::fmax(rises ? x - bend : bend - x, 0.0);
          };
          const double at_infinity = slope + (rises ? 1.0 : 0.0);
          double pairs = 2.0 * mass * term.excess * at_infinity, found = sum.excess * at_infinity;
          for (std::size_t i = 0; i < term.points.size(); ++i)
            for (std::size_t j = 0; j < term.points.size(); ++j)
              pairs += term.mass[i] * term.mass[j] * f(term.points[i] + term.points[j]);
          for (std::size_t i = 0; i < sum.points.size(); ++i)
            found += sum.mass[i] * f(sum.points[i]);
          const double error =
              4.0 * (sum.mass_error + sum.point_error) *
              (constant * mass * mass + (slope + 1.0) * 2.0 * mass + (rises ? 0.0 : bend));
          EXPECT_LE((side == Side::above ? pairs - found : found - pairs), error)
              << "sigma " << sigma << ", cut " << cut << ", a " << constant << ", b " << slope
              << ", bend " << bend << (rises ? ", rises" : ", falls");
          if (constant + slope > 0.0) {
            EXPECT_NEAR(found, pairs, error);
          }
        };
        check(1.0, 0.0, 0.0, false);  // the mass
        check(0.0, 1.0, 0.0, false);  // the mean
        for (const double share : {0.0, 0.3, 0.9, 0.99}) {
          check(0.0, 0.0, share * sum.points.back(), true);
          check(0.0, 0.0, share * sum.points.back(), false);
        }
      }
}

TEST(Allocation, LossesAreMovedOutwardsByTheErrorsOfTheirTable) {
  const AllocatedGaussian epoch{50, 0.8};
  const AllocationGrid grid{.points = 64, .cut = 1e-12};
  for (const Side side : {Side::above, Side::below}) {
    const double outward = side == Side::above ? 1.0 : -1.0;
    const AllocationTable table = allocation_table(epoch, side, grid);
    ASSERT_GT(table.mass_error, 1e-13);
    ASSERT_GT(table.point_error, 1e-15);
    for (const Change change : {Change::remove, Change::add}) {
      const pld::PrivacyLoss loss = allocation_loss(epoch, change, 1, side, grid);
      std::size_t atom = 0;
      for (std::size_t i = 0; i < table.points.size(); ++i) {
        const double ratio = table.points[i] / 50.0;
        if (ratio == 0.0) continue;
        ASSERT_LT(atom, loss.atoms.size());
        const double mass = change == Change::remove ? table.mass[i] * ratio : table.mass[i];
        const double exact = change == Change::remove ? std::log(ratio) : -std::log(ratio);
        EXPECT_GE(outward * (loss.atoms[atom].mass / mass - 1.0), 0.99 * table.mass_error);
        EXPECT_GE(outward * (loss.atoms[atom].loss - exact), 1.5 * table.point_error);
        EXPECT_NEAR(loss.atoms[atom].mass / mass, 1.0, 1e-9);
        EXPECT_NEAR(loss.atoms[atom].loss, exact, 1e-9);
        ++atom;
      }
      EXPECT_EQ(atom, loss.atoms.size());
      if (change == Change::remove && side == Side::above) {
        EXPECT_GE(loss.infinite, table.excess / 50.0 * (1.0 + 0.99 * table.mass_error));
      }
    }
  }
}

TEST(Allocation, ThreadsShareTables) {
  const auto loss = [](std::uint64_t steps) {
    return allocation_loss({steps, 0.9}, Change::add, 1, Side::above, {.points = 64, .cut = 1e-12});
  };
  // More tables than are kept.
  std::vector<std::future<pld::PrivacyLoss>> found;
  found.reserve(60);
  for (std::uint64_t i = 0; i < 60; ++i)
    found.push_back(std::async(std::launch::async, loss, 2 + i % 20));
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    const pld::PrivacyLoss one = found[i].get(), again = loss(2 + i % 20);
    ASSERT_EQ(one.atoms.size(), again.atoms.size());
    EXPECT_EQ(one.infinite, again.infinite);
    for (std::size_t j = 0; j < one.atoms.size(); ++j) {
      EXPECT_EQ(one.atoms[j].loss, again.atoms[j].loss);
      EXPECT_EQ(one.atoms[j].mass, again.atoms[j].mass);
    }
  }
}

/// Both bounds of a composition in the direction `remove`, with small tables.
PrivacyBound bounds_of(const std::vector<Release>& releases, std::size_t distinct = 256) {
  return pld::ComposedLoss(pld::distinct_losses(releases, Change::remove, 1, distinct,
                                                {.points = 500, .cut = 1e-16}),
                           {})
      .epsilon(1e-6);
}

TEST(Allocation, LessNoiseMoreEpochsAndFewerStepsCostMore) {
  const auto epsilon = [](std::uint64_t steps, double sigma, std::uint64_t epochs) {
    return bounds_of({{AllocatedGaussian{steps, sigma}, epochs}});
  };
  const PrivacyBound base = epsilon(20, 1.0, 3);
  EXPECT_GT(epsilon(19, 1.0, 3).epsilon_lower, base.epsilon);
  EXPECT_GT(epsilon(20, 0.98, 3).epsilon_lower, base.epsilon);
  EXPECT_GT(epsilon(20, 1.0, 4).epsilon_lower, base.epsilon);
}

TEST(Allocation, DifferentEpochsAreComposedAsWhatTheyAre) {
  const Release a{AllocatedGaussian{10, 1.0}, 2}, b{AllocatedGaussian{10, 1.5}, 3};
  const PrivacyBound both = bounds_of({a, b});
  EXPECT_GT(both.epsilon_lower, bounds_of({a}).epsilon);
  EXPECT_LT(both.epsilon, bounds_of({{AllocatedGaussian{10, 1.0}, 5}}).epsilon_lower);
  EXPECT_GT(both.epsilon_lower, bounds_of({{AllocatedGaussian{10, 1.5}, 5}}).epsilon);
  EXPECT_LT(both.epsilon - both.epsilon_lower, 4e-3 * both.epsilon);
  // In any order and division, and also where Poisson releases are grouped.
  const PrivacyBound divided =
      bounds_of({b, {AllocatedGaussian{10, 1.0}, 1}, {AllocatedGaussian{10, 1.0}, 1}});
  EXPECT_NEAR(divided.epsilon, both.epsilon, 1e-9);
  std::vector<Release> many{a, b};
  for (int i = 0; i < 8; ++i) many.push_back({PoissonGaussian{0.001, 4.0 + 1e-6 * i}, 1});
  const PrivacyBound grouped = bounds_of(many, 4), exact = bounds_of(many);
  EXPECT_GE(grouped.epsilon, exact.epsilon_lower);
  EXPECT_LE(grouped.epsilon, exact.epsilon * (1 + 1e-3));
  // Together with a Gaussian release, whose loss is known: more than each alone.
  const PrivacyBound mixed = bounds_of({a, {Gaussian{3.0}, 1}});
  EXPECT_GT(mixed.epsilon_lower, bounds_of({a}).epsilon);
  EXPECT_LT(mixed.epsilon - mixed.epsilon_lower, 4e-3 * mixed.epsilon);
}

TEST(Allocation, IsRefusedWhereNoBoundIsKnown) {
  const Release epoch{AllocatedGaussian{10, 1.0}, 2};
  const auto account = [&](const Composition& c, AccountantKind kind) {
    (void)Accountant(c, {.kind = kind}).epsilon(1e-5);
  };
  const Composition groups{.releases = {epoch}, .group = 2};
  const Composition replace{.releases = {epoch}, .relation = NeighbouringRelation::replace_one};
  for (const AccountantKind kind :
       {AccountantKind::best, AccountantKind::pld, AccountantKind::rdp, AccountantKind::advanced}) {
    EXPECT_THROW(account(groups, kind), std::domain_error);
    EXPECT_THROW(account(replace, kind), std::domain_error);
    if (kind == AccountantKind::rdp || kind == AccountantKind::advanced) {
      EXPECT_THROW(account({.releases = {epoch}}, kind), std::domain_error);
    }
  }
  EXPECT_THROW(rdp(epoch.mechanism, 8.0), std::domain_error);
  EXPECT_THROW(zcdp_of(epoch.mechanism), std::domain_error);
  for (const Budget& budget : {renyi_budget(8.0, 3.0, 1e-5), zcdp_budget(3.0, 1e-5)}) {
    Filter filter(budget);
    EXPECT_THROW((void)filter.charge(epoch), std::domain_error);
    EXPECT_TRUE(filter.ledger().releases().empty());
  }
  for (const AllocatedGaussian& wrong :
       {AllocatedGaussian{0, 1.0}, AllocatedGaussian{10, 0.0}, AllocatedGaussian{10, -1.0},
        AllocatedGaussian{10, nan}, AllocatedGaussian{10, infinity},
        AllocatedGaussian{(std::uint64_t{1} << 32) + 1, 1.0}})
    EXPECT_THROW(check(Mechanism(wrong)), std::invalid_argument);
  // Noise so small that the likelihood ratio leaves the range of double.
  EXPECT_THROW(account({.releases = {{AllocatedGaussian{10, 0.02}, 1}}}, AccountantKind::pld),
               std::domain_error);
}

TEST(Allocation, CurvesOfEpsilonAndDeltaAgree) {
  Accountant refined({.releases = {{AllocatedGaussian{3, 1.0}, 5}}});
  const PrivacyBound fine = refined.epsilon(1e-5);
  EXPECT_LT(fine.epsilon - fine.epsilon_lower, 2e-4 * fine.epsilon);
  EXPECT_EQ(refined.epsilon(0.95).epsilon, 0.0);
  for (const double delta : {1e-2, 1e-12, 1e-30}) {
    Accountant accountant({.releases = {{AllocatedGaussian{30, 1.0}, 5}}},
                          {.allocation_points = 500});
    const PrivacyBound epsilon = accountant.epsilon(delta);
    EXPECT_EQ(epsilon.epsilon_lower, 0.0) << "not computed with a given number of points";
    const double back = accountant.delta(epsilon.epsilon).delta;
    EXPECT_GE(back, delta * 0.9) << delta;
    EXPECT_LE(back, delta * 1.02) << delta;
  }
}

TEST(Allocation, IsCalibrated) {
  struct Goal {
    std::uint64_t steps, epochs;
    double epsilon;
  };
  for (const Goal& goal : {Goal{20, 20, 1.0}, Goal{2, 1, 3.0}, Goal{10, 3, 8.0}}) {
    const Release epochs{AllocatedGaussian{goal.steps, 0.0}, goal.epochs};
    const double sigma = calibrate_sigma({}, epochs, goal.epsilon, 1e-5);
    const auto epsilon = [&](double noise) {
      return Accountant({.releases = {{AllocatedGaussian{goal.steps, noise}, goal.epochs}}})
          .epsilon(1e-5);
    };
    EXPECT_LE(epsilon(sigma).epsilon, goal.epsilon);
    EXPECT_GT(epsilon(sigma * (1 - 2e-3)).epsilon_lower, goal.epsilon);
  }
  const Release epoch{AllocatedGaussian{30, 1.0}, 0};
  const std::uint64_t epochs = calibrate_steps({}, epoch, 3.0, 1e-5);
  EXPECT_LE(Accountant({.releases = {{epoch.mechanism, epochs}}}).epsilon(1e-5).epsilon, 3.0);
  EXPECT_GT(Accountant({.releases = {{epoch.mechanism, epochs + 1}}}).epsilon(1e-5).epsilon, 3.0);
  EXPECT_THROW(calibrate_rate({}, {AllocatedGaussian{30, 1.0}, 2}, 3.0, 1e-5), std::domain_error);
}

/// golden/allocation.json, where it lies beside the project.
class GoldenAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path file = shared_file("golden/allocation.json");
    std::ifstream stream(file);
    if (!stream) GTEST_SKIP() << "no golden values: " << file;
    golden = nlohmann::json::parse(stream);
  }

  nlohmann::json golden;
};

/// Returns the parts of an epoch whose composition dominates k uses of each example in t steps.
std::vector<Release> parts_of(std::uint64_t t, std::uint64_t k, std::uint64_t epochs,
                              double sigma) {
  const std::uint64_t longer = t % k;
  std::vector<Release> parts{{AllocatedGaussian{t / k, sigma}, (k - longer) * epochs}};
  if (longer > 0) parts.push_back({AllocatedGaussian{t / k + 1, sigma}, longer * epochs});
  return parts;
}

TEST_F(GoldenAllocation, EverySettingAgrees) {
  ASSERT_EQ(golden["allocation"].size(), 48u);
  for (const auto& c : golden["allocation"]) {
    const double delta = c["delta"], epochs = c["epochs"];
    const std::string where = c.dump();
    for (const Change change : {Change::remove, Change::add}) {
      std::vector<pld::DistinctLoss> losses;
      const AllocationGrid grid{.points = 1000, .cut = 1e-8 * delta / epochs};
      for (const Release& part : parts_of(c["per_epoch"], c["k"], c["epochs"], c["sigma"])) {
        const auto& epoch = std::get<AllocatedGaussian>(part.mechanism);
        losses.push_back({.above = allocation_loss(epoch, change, 1, Side::above, grid),
                          .below = allocation_loss(epoch, change, 1, Side::below, grid),
                          .same = false,
                          .count = part.count});
      }
      const PrivacyBound found = pld::ComposedLoss(std::move(losses), {}).epsilon(delta);
      const char* const name = change == Change::remove ? "epsilon_remove" : "epsilon_add";
      const double upper = c[name];
      // Only upper bounds are known for k > 1: within 0.06 % of the truth.
      const std::string lower_name = std::string(name) + "_lower";
      const double lower = c.contains(lower_name) && c[lower_name].is_number()
                               ? c[lower_name].get<double>()
                               : upper * (1 - 6e-4);
      EXPECT_LE(found.epsilon_lower, upper) << where;
      EXPECT_GE(found.epsilon, lower) << where;
      EXPECT_LE(found.epsilon, upper * (1 + 4e-3)) << where;
      EXPECT_LE(found.epsilon - found.epsilon_lower, 6e-3 * found.epsilon) << where;
      const std::size_t direction = change == Change::remove ? 0 : 1;
      EXPECT_LE(found.epsilon_lower, c["dp_accounting_upper"][direction].get<double>()) << where;
      if (c["dp_accounting_lower"].is_array()) {
        EXPECT_GE(found.epsilon, c["dp_accounting_lower"][direction].get<double>()) << where;
      }
    }
  }
}

TEST_F(GoldenAllocation, SmallestNoiseAgrees) {
  for (const auto& c : golden["smallest_sigma"]) {
    const Release epochs{AllocatedGaussian{c["per_epoch"], 0.0}, c["epochs"]};
    const double sigma = calibrate_sigma({}, epochs, c["epsilon"], c["delta"]);
    EXPECT_GE(sigma, c["sigma_lower"].get<double>()) << c.dump();
    EXPECT_LE(sigma, c["sigma"].get<double>() * (1 + 5e-4)) << c.dump();
    EXPECT_LT(sigma, c["sigma_poisson"].get<double>()) << c.dump();
  }
}

TEST_F(GoldenAllocation, MonteCarloOfSeveralEpochsAgrees) {
  for (const auto& c : golden["checks"]["monte_carlo"]) {
    const AllocatedGaussian epoch{c["steps"], c["sigma"]};
    const AllocationGrid grid{.points = 1000, .cut = 1e-14};
    for (const Change change : {Change::remove, Change::add}) {
      const PrivacyBound found = delta_in(epoch, c["epochs"], change, c["eps"], grid);
      const std::size_t direction = change == Change::remove ? 0 : 1;
      const auto& simulated = c[change == Change::remove ? "mc_remove" : "mc_add"];
      const double mean = simulated[0], error = simulated[1];
      EXPECT_NEAR(found.delta, mean, 5 * error + 4e-3 * mean) << c.dump();
      EXPECT_NEAR(found.delta_lower, mean, 5 * error + 4e-3 * mean) << c.dump();
      if (!c.contains("up")) continue;
      EXPECT_LE(found.delta_lower, c["up"][direction].get<double>()) << c.dump();
      EXPECT_GE(found.delta, c["low"][direction].get<double>()) << c.dump();
    }
  }
}

/// Formulas that give less than the truth. Ours must not.
TEST_F(GoldenAllocation, IsNotAnyFormulaBelowTheTruth) {
  const auto& wrong = golden["must_not"];
  {  // Poisson's accountant, in the direction `add`
    const auto& c = wrong["poisson_for_add"];
    const PrivacyBound found = epsilon_in({c["t"], c["sigma"]}, 1, Change::add, c["delta"]);
    EXPECT_GE(found.epsilon, c["truth_add_at_least"].get<double>());
    EXPECT_GT(found.epsilon_lower, 3.0 * c["poisson_add"].get<double>());
  }
  for (const auto& [name, c] : wrong.items()) {  // and in the larger direction, at small epsilon
    double sigma = 0.0, epsilon = 0.0;
    unsigned steps = 0;
    if (std::sscanf(name.c_str(), "delta_small_eps_%lf_%u_%lf", &sigma, &steps, &epsilon) != 3)
      continue;
    const AllocationGrid grid{.points = 1000, .cut = 1e-10};
    const PrivacyBound remove = delta_in({steps, sigma}, 1, Change::remove, epsilon, grid);
    const PrivacyBound add = delta_in({steps, sigma}, 1, Change::add, epsilon, grid);
    EXPECT_GE(std::fmax(remove.delta, add.delta), c["allocation_at_least"].get<double>()) << name;
    EXPECT_GT(std::fmax(remove.delta_lower, add.delta_lower), c["poisson"].get<double>()) << name;
  }
  {  // an epoch pro rata: the first step alone costs more than a tenth
    const auto& c = wrong["prorata_1_10"];
    const double truth = c["epoch"];
    const PrivacyBound found = epsilon_in({10, 1.0}, 1, Change::remove, 1e-5);
    EXPECT_NEAR(found.epsilon, truth, 1e-3 * truth);
    EXPECT_GT(found.epsilon_lower, c["truth_after_one_step"].get<double>());
  }
  {  // 2 of 4 steps as 1 of 2
    const auto& c = wrong["k_as_one"];
    const auto parts = parts_of(4, 2, 1, 1.0);
    const double truth = c["truth_2_of_4_mc"][0], error = c["truth_2_of_4_mc"][1];
    EXPECT_GT(Accountant({.releases = parts}, {.allocation_points = 1000}).epsilon(1e-3).epsilon,
              truth + 5 * error);
  }
  {  // fresh bins; those that are kept cost as one epoch of less noise
    const auto& c = wrong["fixed_bins_2_118_20"];
    const double fresh = c["fresh"];
    EXPECT_NEAR(epsilon_in({118, 2.0}, 20, Change::remove, 1e-5).epsilon, fresh, 1e-3 * fresh);
    const double kept = c["fixed_truth"];
    EXPECT_NEAR(epsilon_in({118, 2.0 / std::sqrt(20.0)}, 1, Change::remove, 1e-5).epsilon, kept,
                1e-3 * kept);
  }
}

}  // namespace
}  // namespace cudp::privacy
