// Audits of the methods that are planned ahead, through the engine and the plan that train. See
// audit_dpis_test.cpp and audit_dp_agd_test.cpp for the others.
#include "tests/audit/audit.hpp"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/methods/method.hpp"
#include "tests/audit/audit_cases.hpp"

namespace cudp::audit {
namespace {

constexpr double kDelta = 1e-2;
constexpr double kEpsilon = 2.0;

/// The bound on the one mechanism whose epsilon is known: it is below, and not far.
TEST(Audit, BoundsTheGaussianMechanismFromBelow) {
  for (const double sigma : {0.7, 1.5}) {
    const Trial trial = [&](bool with, std::uint64_t run) {
      std::mt19937_64 random(2 * run + (with ? 1 : 0));
      return (with ? 1.0 : 0.0) + std::normal_distribution<double>(0.0, sigma)(random);
    };
    privacy::Question q;
    q.steps = {{privacy::Gaussian{sigma}, 1}};
    const double epsilon = privacy::Account(q).epsilon(kDelta).epsilon;
    const double bound = epsilon_lower(trial, kDelta);
    EXPECT_LE(bound, epsilon);
    if (!kFewRuns) {
      EXPECT_GT(bound, 0.5 * epsilon);
    }
  }
}

TEST(Audit, ProbabilitiesAreBoundedAsClopperAndPearsonDo) {
  EXPECT_EQ(at_least(0, 100, 0.025), 0.0);
  EXPECT_NEAR(at_most(0, 100, 0.025), 1.0 - std::pow(0.025, 0.01), 1e-12);
  EXPECT_NEAR(at_least(100, 100, 0.025), std::pow(0.025, 0.01), 1e-12);
  EXPECT_EQ(at_most(100, 100, 0.025), 1.0);
  EXPECT_NEAR(at_least(10, 100, 0.025), 0.0490, 5e-5);  // published tables
  EXPECT_NEAR(at_most(10, 100, 0.025), 0.1762, 5e-5);
}

struct Planned {
  const char* name;
  MethodKind method;
  ScheduleKind schedule = ScheduleKind::constant;
};

TrainConfig config_of(const Planned& p) {
  TrainConfig c;
  c.method = p.method;
  c.schedule = p.schedule;
  c.epsilon = kEpsilon;
  c.delta = kDelta;
  c.batch = 4;
  c.epochs.reset();
  c.steps = 4;
  c.clip = 2.0;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.noise_decay = 0.4;  // by epochs of two steps
  c.poly_a = 1.0;
  c.poly_c = 2.0;
  c.adp_noise_growth = 20.0;
  c.adaclip_least = 1e-4;
  c.adaclip_most = 1.0;
  c.adaclip_beta2 = 0.5;
  return c;
}

TrainState start_of(const Audited& a) {
  const std::size_t d = a.with.network.parameter_count;
  TrainState s;
  s.parameters.assign(d, 0.0f);
  if (a.config.method == MethodKind::adaclip) {
    s.mean.assign(d, 0.0f);
    s.deviation.assign(
        d, static_cast<float>(std::sqrt(a.config.adaclip_least * a.config.adaclip_most)));
  }
  if (a.config.schedule == ScheduleKind::adaptive) s.step_size_sum = a.config.adaptive_start;
  return s;
}

/// The noisy sum along the first coordinate, in units of what one example adds. Everything else
/// that it takes is released.
double released_sum(const Audited& a, const Schedule& schedule, std::uint64_t step,
                    const TrainState& before, const TrainState& after) {
  double rate = schedule.learning_rate(step);
  if (a.config.schedule == ScheduleKind::adaptive) rate /= std::sqrt(after.step_size_sum);
  double g = (static_cast<double>(before.parameters[0]) - after.parameters[0]) / rate;
  if (a.config.method == MethodKind::adaclip) {
    double deviations = 0.0;
    for (const float s : before.deviation) deviations += static_cast<double>(s);
    const double scale = std::sqrt(static_cast<double>(before.deviation[0]) * deviations);
    g = (g - static_cast<double>(before.mean[0])) / scale;
  }
  return -g * a.plan.expected_batch / a.plan.clip_norm;
}

/// Trains with an engine of one plan by a method of another, and weighs all that is released.
double run_odds(const Audited& a, const PrivacyPlan& of_engine, const PrivacyPlan& of_method,
                bool with, std::uint64_t run) {
  const auto engine = make_engine(a.of(with), of_engine, a.size, key_of(with, run));
  engine->set_state(start_of(a));
  DpisEpoch none;
  const auto method = make_method(a.facts(of_method), none);
  const Schedule schedule(a.config, of_method, a.steps_per_epoch());
  double odds = 0.0;
  TrainState before = engine->state();
  for (std::uint64_t t = 0; t < a.plan.steps; ++t) {
    method->run(*engine, t, t + 1);
    TrainState after = engine->state();
    odds += log_odds(released_sum(a, schedule, t, before, after), a.plan.sampling_rate(),
                     a.plan.noise_multiplier_at(t));
    before = std::move(after);
  }
  return odds;
}

double certificate(const Audited& a) {
  return guarantee(a.plan, releases(a.plan, a.plan.steps)).epsilon;
}

class PlannedAudit : public testing::TestWithParam<Planned> {};

TEST_P(PlannedAudit, ShowsNoMoreThanTheCertificateSays) {
  const Audited a(config_of(GetParam()), WorstPair(8, 1.0f));
  const double claimed = certificate(a);
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) { return run_odds(a, a.plan, a.plan, with, run); }, kDelta);
  RecordProperty("epsilon_claimed", std::to_string(claimed));
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(claimed, kEpsilon);
  EXPECT_LE(bound, claimed);
  if (!kFewRuns) {
    EXPECT_GT(bound, claimed / 5.0);
  }
}

TEST_P(PlannedAudit, CatchesHalfTheNoise) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  const Audited a(config_of(GetParam()), WorstPair(8, 1.0f));
  PrivacyPlan half = a.plan;
  half.noise_multiplier *= 0.5;
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) { return run_odds(a, a.plan, half, with, run); }, kDelta);
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_GT(bound, certificate(a));
}

INSTANTIATE_TEST_SUITE_P(
    All, PlannedAudit,
    testing::Values(Planned{"dpsgd", MethodKind::dpsgd}, Planned{"dpsgd_ts", MethodKind::dpsgd_ts},
                    Planned{"dpsgd_decay", MethodKind::dpsgd_decay},
                    Planned{"adp_sgd", MethodKind::adp_sgd, ScheduleKind::polynomial},
                    Planned{"adp_sgd_adaptive", MethodKind::adp_sgd, ScheduleKind::adaptive},
                    Planned{"adaclip", MethodKind::adaclip}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(Audit, CatchesContributionsThatAreNotClipped) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  const Audited a(config_of({"dpsgd", MethodKind::dpsgd}), WorstPair(8, 1.0f));
  PrivacyPlan loose = a.plan;
  loose.clip_norm *= 3.0;
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) { return run_odds(a, loose, a.plan, with, run); }, kDelta);
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_GT(bound, certificate(a));
}

}  // namespace
}  // namespace cudp::audit
