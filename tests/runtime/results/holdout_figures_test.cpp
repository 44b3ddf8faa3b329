// What is released of held-out rows: no row moves it by more than is stated, whatever the model
// says of it, and the noise is that of the plan. Under one key the noise is the same, so that two
// releases differ by their sums.
#include "runtime/results/holdout_figures.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Anything final : public ReleaseAuthority {
 public:
  bool admit(const Charge& charge) override {
    charged.push_back(charge.mechanism);
    return true;
  }
  std::vector<privacy::Mechanism> charged;
};

std::vector<double> released(const HoldoutPlan& plan, const Predictions& p, int classes,
                             const TargetBounds& bounds = {.min = -20.0, .max = 40.0}) {
  Anything authority;
  Gate gate(Generator::chacha20, key_from_seed(3), authority);
  const HoldoutFigures f = release_holdout(plan, p, classes, bounds, gate);
  EXPECT_EQ(authority.charged.size(), plan.releases);
  for (const privacy::Mechanism& m : authority.charged)
    EXPECT_EQ(m, privacy::Mechanism(privacy::Gaussian{plan.sigma}));
  for (const Released& r : gate.released()) {
    EXPECT_EQ(r.release.noise_std, plan.sigma);
    EXPECT_EQ(r.release.sensitivity, 1.0);
    EXPECT_EQ(r.release.purpose, Stream::holdout_figures);
  }
  return f.noisy;
}

std::vector<double> moved(const std::vector<double>& from, const std::vector<double>& to) {
  std::vector<double> by;
  by.reserve(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) by.push_back(to[i] - from[i]);
  return by;
}

TEST(HoldoutFigures, OfLabelsMoveOneCountByOneForEachRow) {
  const HoldoutPlan plan = plan_holdout(0.2, 1.0, 1e-6, false, 10.0, 1);
  Predictions p{.loss = Loss::softmax_cross_entropy, .outputs = 3, .logits = {}, .labels = {}};
  std::vector<double> before = released(plan, p, 3);  // of no row
  struct Row {
    std::vector<float> logits;
    std::uint8_t label;
    std::size_t cell;
  };
  const std::vector<Row> rows = {{{1, 0, 0}, 0, 0},           {{0, 0, 5}, 0, 2},
                                 {{-1, 9, 0}, 1, 4},          {{kMissing, 0, 0}, 2, 6},
                                 {{kInf, 0, kMissing}, 1, 5}, {{kInf, kInf, kInf}, 0, 1},
                                 {{-kInf, 1e38f, 0}, 2, 7}};
  for (const Row& row : rows) {
    p.logits.insert(p.logits.end(), row.logits.begin(), row.logits.end());
    p.labels.push_back(row.label);
    const std::vector<double> now = released(plan, p, 3);
    std::vector<double> expected(9, 0.0);
    expected[row.cell] = 1.0;
    const std::vector<double> by = moved(before, now);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(by[i], expected[i], 1e-6) << row.cell;
    before = now;
  }
}

/// A threshold chooses the cell, and a row is in one cell whatever its logits are.
TEST(HoldoutFigures, ByAThresholdMoveOneCountByOneForEachRow) {
  HoldoutPlan plan = plan_holdout(0.2, 1.0, 1e-6, false, 10.0, 1);
  plan.threshold = 0.3;
  const float at = std::log(0.3f / 0.7f);
  struct Row {
    float logit;  ///< of the second class
    std::uint8_t label;
    std::size_t cell;
  };
  const std::vector<Row> rows = {{at + 0.01f, 1, 3}, {at - 0.01f, 1, 2}, {at + 0.01f, 0, 1},
                                 {at - 0.01f, 0, 0}, {kInf, 0, 1},       {-kInf, 1, 2},
                                 {kMissing, 1, 2},   {kMissing, 0, 1},   {1e38f, 1, 3}};
  for (const bool softmax : {false, true}) {
    Predictions p{.loss = softmax ? Loss::softmax_cross_entropy : Loss::logistic,
                  .outputs = softmax ? 2 : 1,
                  .logits = {},
                  .labels = {}};
    std::vector<double> before = released(plan, p, 2);
    for (const Row& row : rows) {
      if (softmax && std::isinf(row.logit)) continue;  // which softmax takes for no number
      if (softmax) p.logits.push_back(0.0f);
      p.logits.push_back(row.logit);
      p.labels.push_back(row.label);
      const std::vector<double> now = released(plan, p, 2);
      std::vector<double> expected(4, 0.0);
      expected[row.cell] = 1.0;
      const std::vector<double> by = moved(before, now);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(by[i], expected[i], 1e-6) << row.logit;
      before = now;
    }
  }
}

TEST(HoldoutFigures, OfTargetsMoveEachSumByAtMostOne) {
  for (const double epsilon : {150.0, 1.0, 1e-3, 1e-7}) {
    const HoldoutPlan plan = plan_holdout(0.2, epsilon, 1e-6, true, 0.0, 1);
    Predictions p{.loss = Loss::squared, .outputs = 1, .logits = {}, .labels = {}};
    std::vector<double> before = released(plan, p, 1);
    for (const float logit : {0.0f, 1.0f, -1.0f, 1e38f, kMissing, kInf, -kInf, 0.25f})
      for (const float target : {-1.0f, 1.0f, 0.25f}) {
        p.logits.push_back(logit);
        p.targets.push_back(target);
        p.labels.push_back(0);
        const std::vector<double> now = released(plan, p, 1);
        const std::vector<double> by = moved(before, now);
        const double rounding = plan.sigma * 0x1p-20 + 1e-9;
        EXPECT_NEAR(by[0], 1.0, rounding);
        double e = std::fabs(std::fmin(std::fmax(logit, -1.0f), 1.0f) - target) / 2.0;
        if (std::isnan(logit)) e = 1.0;
        for (std::size_t j = 1; j < 4; ++j) {
          EXPECT_LE(by[j], 1.0 + rounding);
          EXPECT_NEAR(by[j], std::pow(e, j == 3 ? 4 : j), rounding + 0x1p-29);
        }
        before = now;
      }
  }
}

/// Beyond 2^23 rows a sum in double has fewer digits than the grid of what is added: a row that
/// takes the sum across 2^53 steps of the grid would change how every later row is rounded, and so
/// move it by more than 1.
TEST(HoldoutFigures, OfTenMillionTargetsMoveByWhatTheRowAddsAlone) {
  constexpr TargetBounds kBounds{.min = -1.0, .max = 1.0};
  constexpr std::size_t kWhole = std::size_t{1} << 23;  // rows of error 1, 2^30 steps each
  constexpr std::size_t kSmall = std::size_t{1} << 21;  // rows of 3 steps
  constexpr float kThreeSteps = 6.0f * 0x1p-30f;
  const HoldoutPlan plan = plan_holdout(0.2, 1.0, 1e-6, true, 0.0, 1);
  Predictions p{.loss = Loss::squared, .outputs = 1, .logits = {}, .labels = {}};
  p.targets.assign(kWhole, -1.0f);
  p.logits.assign(kWhole, 1.0f);
  p.targets.resize(kWhole + kSmall, 0.0f);
  p.logits.resize(kWhole + kSmall, kThreeSteps);
  p.labels.assign(kWhole + kSmall, 0);
  const std::vector<double> with = released(plan, p, 1, kBounds);
  // One row of error 1 less: the last of the small ones takes its place.
  p.targets[0] = p.targets.back();
  p.logits[0] = p.logits.back();
  p.targets.pop_back();
  p.logits.pop_back();
  p.labels.pop_back();
  for (const double by : moved(released(plan, p, 1, kBounds), with)) EXPECT_NEAR(by, 1.0, 1e-8);
}

/// With the number of training examples they are within the budget, and use it up.
TEST(HoldoutFigures, SpendTheirBudgetAndNoMore) {
  for (const double epsilon : {0.1, 1.0, 8.0})
    for (const double size_noise : {0.0, 60.0})
      for (const std::uint64_t rows : {1u, 4u})
        for (const bool target : {false, true}) {
          const double noise_of_size = static_cast<double>(rows) * size_noise;
          const HoldoutPlan plan = plan_holdout(0.2, epsilon, 1e-6, target, noise_of_size, rows);
          std::vector<privacy::Release> all = {{privacy::Gaussian{plan.sigma}, plan.releases}};
          if (size_noise > 0.0) all.push_back({privacy::Gaussian{noise_of_size}, 1});
          const privacy::PrivacyBound spent =
              privacy::Accountant({.releases = all, .group = rows}).epsilon(1e-6);
          EXPECT_LE(spent.epsilon_lower, epsilon);
          EXPECT_GE(spent.epsilon, epsilon * 0.999);
        }
  EXPECT_THROW(plan_holdout(0.2, 0.1, 1e-6, false, 1.0, 1), BudgetError);  // spent by the count
  EXPECT_THROW(plan_holdout(0.2, 1e-14, 1e-300, false, 0.0, 1), BudgetError);
}

}  // namespace
}  // namespace cudp
