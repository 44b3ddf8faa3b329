// Audit of a whole tuning: a random number of trainings by the engine and the plan that train, of
// which the one with the best score is released. The score is what the attacker would choose: how
// much the training looks as if the example were there.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/selection.hpp"
#include "runtime/base/derived_key.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "tests/audit/audit.hpp"
#include "tests/audit/audit_cases.hpp"

namespace cudp::audit {
namespace {

constexpr double kTunedEpsilon = 2.0;
constexpr std::uint64_t kMaxTunedRuns = 8;

/// A tuning among batches of 4 and of 8 examples.
struct AuditedTuning {
  privacy::StoppingLaw law = privacy::stopping_law(0.0, 2.0, kMaxTunedRuns);
  privacy::Stopping stopping{law};
  std::vector<Audited> candidates;
  privacy::SelectionBudget budget;

  AuditedTuning() {
    budget = privacy::calibrate_selection(
        law, kTunedEpsilon, kDelta, [this](double epsilon, double delta) {
          std::vector<privacy::RunSpending> spent;
          candidates.clear();
          for (const int batch : {4, 8}) {
            TrainConfig c;
            c.method = "dpsgd";
            c.epsilon = epsilon;
            c.delta = delta;
            c.batch = batch;
            c.epochs.reset();
            c.steps = 4;
            c.clip_norm = 2.0;
            c.optimizer = OptimizerKind::sgd;
            c.lr = 1e-6;
            const Audited& a = candidates.emplace_back(c, WorstPair(12, 1.0f));
            spent.push_back({.run = privacy::PlannedRun{releases(a.plan, a.plan.steps)},
                             .failure = a.plan.failure});
          }
          return spent;
        });
  }
};

/// Trains with `noise` times the planned noise, and weighs all that is released.
double odds_of_training(const Audited& a, double noise, bool with, std::uint64_t run) {
  PrivacyPlan plan = a.plan;
  plan.noise_multiplier *= noise;
  AuditedRun<DpSgd> training(a, a.backend, plan, with, run);
  double odds = 0.0;
  float before = 0.0f;  // along the example's coordinate
  for (std::uint64_t t = 0; t < plan.steps; ++t) {
    if (training.method().authorise(training.budget(), t, t + 1) != t + 1)
      throw std::logic_error("the budget ended before the training");
    training.method().train(t, t + 1);
    const float after = training.method().state().array("parameters")[0];
    const double sum = (static_cast<double>(after) - before) / a.config.lr * a.plan.expected_batch /
                       a.plan.clip_norm;
    odds += log_odds(sum, plan.sampling_rate(), plan.noise_multiplier);
    before = after;
  }
  return odds;
}

/// What a whole tuning shows of epsilon.
double shown_by_tuning(const AuditedTuning& tuning, double noise) {
  return epsilon_lower(
      [&](bool with, std::uint64_t run) {
        const RandomKey key = key_of(with, run);
        const std::uint64_t number = tuning.stopping.draw(derived_key(key, 0).bits[0]);
        double best = -1e300;
        for (std::uint64_t k = 0; k < number; ++k) {
          const std::uint64_t drawn = derived_key(key, k + 1).bits[0];
          best = std::max(best, odds_of_training(tuning.candidates[drawn >> 63], noise, with,
                                                 run * kMaxTunedRuns + k));
        }
        return best;
      },
      kDelta);
}

TEST(TuningAudit, ShowsNoMoreThanTheCertificateSays) {
  const AuditedTuning tuning;
  const double claimed = tuning.budget.whole.epsilon;
  EXPECT_LE(claimed, kTunedEpsilon);
  const double bound = shown_by_tuning(tuning, 1.0);
  RecordProperty("epsilon_claimed", std::to_string(claimed));
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(bound, claimed);
  if (!kFewRuns) {
    EXPECT_GT(bound, claimed / 5.0);
  }
}

TEST(TuningAudit, ConvictsATuningWithHalfTheNoise) {
  const AuditedTuning tuning;
  const double bound = shown_by_tuning(tuning, 0.5);
  RecordProperty("epsilon_shown", std::to_string(bound));
  if (!kFewRuns) {
    EXPECT_GT(bound, kTunedEpsilon);
  }
}

}  // namespace
}  // namespace cudp::audit
