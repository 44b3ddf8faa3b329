// A hold-out and a training on the rest compose in parallel: the law of both releases together,
// made here by going through all coins and all samples, is within the larger of the two promises,
// in both directions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"

namespace cudp::privacy {
namespace {

/// A unit's rows: what each adds to the training's sum when it is drawn, and to a held-out count.
struct UnitRows {
  std::vector<double> train, held;
};

constexpr double kQ = 0.5;                        // of a training row to be drawn
constexpr double kShare = 0.3;                    // of units that are held out
constexpr double kSigma = 2.0, kHeldSigma = 2.5;  // of the two releases

/// Normal mixtures of two numbers: the training's noisy sum, and the noisy count. Which numbers the
/// count has may follow from the first release: here a row counts in one of two ways, by the sign
/// of the sum, as a model predicts it right or not.
struct Law {
  struct Part {
    double p, sum, held_if_below, held_if_above;
  };
  std::vector<Part> parts;

  explicit Law(const std::vector<UnitRows>& units) : parts{{1.0, 0.0, 0.0, 0.0}} {
    for (const UnitRows& u : units) {
      std::vector<Part> next;
      for (const Part& part : parts) {
        Part held = part;  // as a whole
        held.p *= kShare;
        for (const double x : u.held) {
          held.held_if_below += x;
          held.held_if_above += 1.0 - x;
        }
        next.push_back(held);
        for (std::size_t drawn = 0; drawn < std::size_t{1} << u.train.size(); ++drawn) {
          Part trained = part;
          trained.p *= 1.0 - kShare;
          for (std::size_t i = 0; i < u.train.size(); ++i) {
            const bool in = (drawn >> i & 1) != 0;
            trained.p *= in ? kQ : 1.0 - kQ;
            if (in) trained.sum += u.train[i];
          }
          next.push_back(trained);
        }
      }
      parts = next;
    }
  }

  double density(double x, double y) const {
    double all = 0.0;
    for (const Part& part : parts) {
      const double a = (x - part.sum) / kSigma;
      const double b = (y - (x < 0.0 ? part.held_if_below : part.held_if_above)) / kHeldSigma;
      all += part.p * std::exp(-0.5 * (a * a + b * b));
    }
    return all / (2.0 * M_PI * kSigma * kHeldSigma);
  }
};

/// The integrals of max(0, with - e^epsilon without), and the other way round.
std::pair<double, double> deltas(const Law& with, const Law& without, double epsilon) {
  constexpr double kStep = 0.25;
  double there = 0.0, gone = 0.0;
  for (double x = -14.0; x < 16.0; x += kStep)
    for (double y = -14.0; y < 18.0; y += kStep) {
      const double p = with.density(x, y), q = without.density(x, y);
      there += kStep * kStep * std::fmax(0.0, p - std::exp(epsilon) * q);
      gone += kStep * kStep * std::fmax(0.0, q - std::exp(epsilon) * p);
    }
  return {there, gone};
}

double bound(const Mechanism& m, std::uint64_t group, double epsilon) {
  return Accountant({.releases = {{m, 1}}, .group = group}).delta(epsilon).delta;
}

TEST(HoldOut, BothPartsTogetherAreWithinTheLargerPromiseBothWaysRound) {
  const std::vector<UnitRows> kinds = {
      {{1.0}, {1.0}}, {{-1.0}, {0.0}}, {{1.0, 1.0}, {1.0, 1.0}}, {{1.0, -0.4}, {0.0, 1.0}}};
  double closest = 1.0;
  for (const double epsilon : {0.3, 0.8})
    for (const UnitRows& unit : kinds)
      for (std::size_t others = 0; others < kinds.size(); ++others) {
        const std::vector<UnitRows> rest(kinds.begin(),
                                         kinds.begin() + static_cast<std::ptrdiff_t>(others));
        std::vector<UnitRows> all = rest;
        all.push_back(unit);
        const auto [there, gone] = deltas(Law(all), Law(rest), epsilon);
        const std::uint64_t k = unit.train.size();
        const double trained = bound(sampled_gaussian_mechanism(kQ, kSigma), k, epsilon);
        const double held = bound(Gaussian{kHeldSigma}, k, epsilon);
        const double larger = std::fmax(trained, held);
        // The coin mixes the two cases, so that even their mean holds.
        const double mixed = kShare * held + (1.0 - kShare) * trained;
        EXPECT_LE(there, mixed * (1.0 + 1e-3) + 1e-9);
        EXPECT_LE(gone, mixed * (1.0 + 1e-3) + 1e-9);
        EXPECT_LE(std::fmax(there, gone), larger * (1.0 + 1e-3));
        closest = std::fmin(closest, 1.0 - std::fmax(there, gone) / larger);
      }
  EXPECT_LT(closest, 0.75);
}

/// Where the coin is not a secret of its own but follows from the row, the parts do not compose in
/// parallel: the test would see it.
TEST(HoldOut, ACoinThatTheTrainingKnowsWouldShow) {
  // Training sums released of all rows, held out or not: then both releases move with the unit.
  const std::vector<UnitRows> one = {{{1.0}, {1.0}}};
  Law both(one);
  for (Law::Part& part : both.parts) part = {part.p, 1.0, 1.0, 1.0};
  const auto [there, gone] = deltas(both, Law({}), 0.3);
  EXPECT_GT(std::fmax(there, gone), std::fmax(bound(sampled_gaussian_mechanism(kQ, kSigma), 1, 0.3),
                                              bound(Gaussian{kHeldSigma}, 1, 0.3)));
}

}  // namespace
}  // namespace cudp::privacy
