// Audits of the methods that are planned ahead, through the engine and the plan that train: whole
// trainings show no more than their certificates say. That less noise, or more of an example, is
// caught is shown by audit_canaries_test.cpp. See audit_dpis_test.cpp and audit_dp_agd_test.cpp for
// the other methods.
#include "tests/audit/audit.hpp"

#include <cmath>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/methods/adaclip.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "runtime/methods/dpsgd_decay.hpp"
#include "runtime/methods/dpsgd_quantile.hpp"
#include "tests/audit/audit_cases.hpp"
#include "tests/support/test_device.hpp"

namespace cudp::audit {
namespace {

constexpr double kEpsilon = 2.0;

/// The bound on the one mechanism whose epsilon is known: it is below, and not far.
TEST(Audit, BoundsTheGaussianMechanismFromBelow) {
  for (const double sigma : {0.7, 1.5}) {
    const Trial trial = [&](bool with, std::uint64_t run) {
      std::mt19937_64 random(2 * run + (with ? 1 : 0));
      return (with ? 1.0 : 0.0) + std::normal_distribution<double>(0.0, sigma)(random);
    };
    const double epsilon =
        privacy::Accountant({.releases = {{privacy::Gaussian{sigma}, 1}}}).epsilon(kDelta).epsilon;
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

using RunOdds = double (*)(const Audited& a, bool with, std::uint64_t run);

struct Planned {
  const char* name;
  const char* method;
  RunOdds odds;
  ScheduleKind schedule = ScheduleKind::constant;
  Sampling sampling = Sampling::poisson;
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
  c.sampling = p.sampling;
  if (p.sampling == Sampling::allocation) {
    c.epochs = 2;  // of two steps
    c.steps.reset();
  }
  c.clip_norm = 2.0;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.poly_a = 1.0;
  c.poly_c = 2.0;
  c.of<DpSgdDecayOptions>().noise_decay = 0.4;  // by epochs of two steps
  c.of<AdpSgdOptions>().noise_growth = 20.0;
  c.of<AdaClipOptions>() = {.beta2 = 0.5, .min_variance = 1e-4, .max_variance = 1.0};
  return c;
}

/// The noisy sum along the first coordinate, in units of what one example adds. Everything else
/// that it takes is released.
double released_sum(const Audited& a, const Schedule& schedule, std::uint64_t step,
                    const MethodState& before, const MethodState& after) {
  double rate = schedule.learning_rate(step);
  if (a.config.schedule == ScheduleKind::adaptive)
    rate /= std::sqrt(after.numbers.at("step_size_sum").get<double>());
  double g =
      (static_cast<double>(before.array("parameters")[0]) - after.array("parameters")[0]) / rate;
  if (a.config.method == "adaclip") {
    double deviations = 0.0;
    for (const float s : before.array("deviation")) deviations += static_cast<double>(s);
    const double scale = std::sqrt(static_cast<double>(before.array("deviation")[0]) * deviations);
    g = (g - static_cast<double>(before.array("mean")[0])) / scale;
  }
  // It changes from step to step where a quantile chooses it.
  const double clip = before.numbers.contains("clip_norm")
                          ? before.numbers.at("clip_norm").get<double>()
                          : a.plan.clip_norm;
  return -g * a.plan.expected_batch / clip;
}

/// The noise on that, in the same units, by the plan of `a`.
double noise_of(const Audited& a, std::uint64_t step) {
  const double sigma = a.plan.noise_multiplier_at(step);
  if (a.config.method != "dpsgd-quantile") return sigma;
  return sigma / std::sqrt(1.0 - a.config.of<QuantileOptions>().noise_share);
}

/// Trains, and weighs what is released: all of it, but for dpsgd-quantile's counts.
template <class M>
double run_odds(const Audited& a, bool with, std::uint64_t run) {
  AuditedRun<M> training(a, a.backend, a.plan, with, run);
  const Schedule schedule(a.config, a.plan, a.size.steps_per_epoch(a.config.batch));
  double odds = 0.0;
  MethodState before = training.method().state();
  for (std::uint64_t t = 0; t < a.plan.steps; ++t) {
    if (training.method().authorise(training.budget(), t, t + 1) != t + 1)
      throw std::logic_error("the budget ended before the training");
    training.method().train(t, t + 1);
    MethodState after = training.method().state();
    odds += log_odds(released_sum(a, schedule, t, before, after), a.plan.sampling_rate(),
                     noise_of(a, t));
    before = std::move(after);
  }
  return odds;
}

/// Trains with random allocation. An example is in one step of each epoch: the odds of an epoch are
/// the mean over its steps.
double allocated_odds(const Audited& a, bool with, std::uint64_t run) {
  AuditedRun<DpSgd> training(a, a.backend, a.plan, with, run);
  const Schedule schedule(a.config, a.plan, a.plan.epoch_steps);
  const double sigma = a.plan.noise_multiplier;
  double odds = 0.0;
  double sum = 0.0;
  MethodState before = training.method().state();
  for (std::uint64_t t = 0; t < a.plan.steps; ++t) {
    if (training.method().authorise(training.budget(), t, t + 1) != t + 1)
      throw std::logic_error("the budget ended before the training");
    training.method().train(t, t + 1);
    MethodState after = training.method().state();
    const double x = released_sum(a, schedule, t, before, after);
    sum += std::exp((x - 0.5) / (sigma * sigma)) / static_cast<double>(a.plan.epoch_steps);
    if ((t + 1) % a.plan.epoch_steps == 0) {
      odds += std::log(sum);
      sum = 0.0;
    }
    before = std::move(after);
  }
  return odds;
}

const Planned kDpSgd{"dpsgd", "dpsgd", run_odds<DpSgd>};

double certificate(const Audited& a) {
  return guarantee(a.plan, releases(a.plan, a.plan.steps)).epsilon;
}

class PlannedAudit : public testing::TestWithParam<Planned> {};

TEST_P(PlannedAudit, ShowsNoMoreThanTheCertificateSays) {
  const Audited a(config_of(GetParam()), WorstPair(8, 1.0f));
  const double claimed = certificate(a);
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) { return GetParam().odds(a, with, run); }, kDelta);
  RecordProperty("epsilon_claimed", std::to_string(claimed));
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(claimed, kEpsilon);
  EXPECT_LE(bound, claimed);
  if (!kFewRuns) {
    EXPECT_GT(bound, claimed / 5.0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PlannedAudit,
    testing::Values(kDpSgd, Planned{"dpsgd_ts", "dpsgd-ts", run_odds<DpSgd>},
                    Planned{.name = "dpsgd_allocation",
                            .method = "dpsgd",
                            .odds = allocated_odds,
                            .sampling = Sampling::allocation},
                    Planned{"dpsgd_decay", "dpsgd-decay", run_odds<DpSgdDecay>},
                    Planned{"adp_sgd", "adp-sgd", run_odds<AdpSgd>, ScheduleKind::polynomial},
                    Planned{"adp_sgd_adaptive", "adp-sgd", run_odds<AdpSgd>,
                            ScheduleKind::adaptive},
                    Planned{"adaclip", "adaclip", run_odds<AdaClip>},
                    Planned{"dpsgd_quantile", "dpsgd-quantile", run_odds<DpSgdQuantile>}),
    [](const auto& i) { return std::string(i.param.name); });

/// The kernels of a device, under the emulator, by a tenth of the runs: each takes many times as
/// long.
TEST(Audit, AdaClipShowsNoMoreOnADevice) {
  const Planned adaclip{"adaclip", "adaclip", run_odds<AdaClip>};
  Audited a(config_of(adaclip), WorstPair(8, 1.0f));
  a.backend.make_engine = [](const Network& network, const EngineSettings& settings) {
    return fused_engine(network, settings, {.multiprocessors = 1});
  };
  const double claimed = certificate(a);
  std::mutex one_at_a_time;  // the emulator is for one thread
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) {
        const std::lock_guard lock(one_at_a_time);
        return adaclip.odds(a, with, run);
      },
      kDelta, kRuns / 10);
  RecordProperty("epsilon_claimed", std::to_string(claimed));
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(bound, claimed);
  if (!kFewRuns) {
    EXPECT_GT(bound, claimed / 20.0);
  }
}

/// One text against none.
TEST(Audit, TextsShowNoMoreThanTheCertificateSays) {
  const Audited a(config_of(kDpSgd), as_texts(WorstPair(8, 1.0f)));
  const double claimed = certificate(a);
  const double bound = epsilon_lower(
      [&](bool with, std::uint64_t run) { return run_odds<DpSgd>(a, with, run); }, kDelta);
  RecordProperty("epsilon_claimed", std::to_string(claimed));
  RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(bound, claimed);
  if (!kFewRuns) {
    EXPECT_GT(bound, claimed / 5.0);
  }
}

}  // namespace
}  // namespace cudp::audit
