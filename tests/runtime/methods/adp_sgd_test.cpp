#include "runtime/methods/adp_sgd.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/step/step_size.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "runtime/methods/dpsgd_decay.hpp"
#include "runtime/methods/noise_spans.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::kCases;

std::unique_ptr<Engine> cuda_engine(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  s.micro_batch = 96;
  return device_engine(net, s);
}

TrainConfig config() {
  TrainConfig c;
  c.method = "adp-sgd";
  c.schedule = ScheduleKind::polynomial;
  c.lr = 1.0;
  c.epsilon = 3.0;
  c.delta = 1e-5;
  c.batch = 256;
  c.epochs.reset();
  c.steps = 39'200;
  return c;
}

PrivacyPlan plan_of(const TrainConfig& c) {
  const Network net = cases::network_of(kCases[0]);
  return cases::plan_of(c, net, {50'000.0, 0.0});
}

double sigma_of(const privacy::Release& r) {
  return std::get<privacy::PoissonGaussian>(r.mechanism).sigma;
}

TEST(AdpNoise, FallsWithTheRootOfTheStepSizeOnTheParameters) {
  // eta_t alpha_t is a constant times sqrt(eta_t).
  for (const ScheduleKind kind :
       {ScheduleKind::polynomial, ScheduleKind::square_root, ScheduleKind::cosine}) {
    TrainConfig c = config();
    c.schedule = kind;
    c.final_lr = 0.01;
    for (const std::uint64_t t : {0u, 1u, 100u, 39'199u}) {
      const double eta = learning_rate(c, 39'200, 196, t);
      EXPECT_NEAR(eta * adp_noise(c, 39'200, 196, t), std::sqrt(c.lr * eta), 1e-12);
    }
  }
  TrainConfig c = config();
  EXPECT_DOUBLE_EQ(adp_noise(c, 100, 10, 61), std::pow(81.0, 0.25));
  c.schedule = ScheduleKind::adaptive;
  c.of<AdpSgdOptions>().noise_growth = 0.5;
  EXPECT_DOUBLE_EQ(adp_noise(c, 100, 10, 50), std::pow(20.0 + 25.0, 0.25));
  c.of<AdpSgdOptions>().constant_noise = true;
  EXPECT_EQ(adp_noise(c, 100, 10, 50), 1.0);
}

TEST(AdpNoise, IsRoundedByAPercentAtMost) {
  const TrainConfig c = config();
  const auto alpha = [&](std::uint64_t t) { return adp_noise(c, 39'200, 196, t); };
  const PrivacyPlan plan = plan_of(c);
  EXPECT_LT(plan.noise.size(), 100u);
  EXPECT_EQ(plan.noise.back().until, 39'200u);
  for (std::uint64_t t = 0; t < 39'200; ++t) {
    const double want = alpha(t) / alpha(0);
    ASSERT_LE(std::fabs(plan.noise_multiplier_at(t) / plan.noise_multiplier / want - 1.0), 0.0109);
  }
}

TEST(AdpNoise, SequencesOfThousandsOfSigmasAreCalibratedTightly) {
  for (const ScheduleKind kind : {ScheduleKind::polynomial, ScheduleKind::square_root}) {
    TrainConfig c = config();
    c.schedule = kind;
    const PrivacyPlan plan = plan_of(c);
    const double epsilon = guarantee(plan, releases(plan, plan.steps)).epsilon;
    EXPECT_LE(epsilon, 3.0);
    EXPECT_GT(epsilon, 3.0 * (1.0 - 2e-5));
    // What is charged is what is drawn, step by step.
    std::uint64_t t = 0;
    for (const privacy::Release& r : step_releases(plan, 0, plan.steps))
      for (std::uint64_t i = 0; i < r.count; ++i, ++t)
        ASSERT_EQ(sigma_of(r), plan.noise_multiplier_at(t));
    EXPECT_EQ(t, plan.steps);
  }
}

TEST(AdpNoise, SpansOfNoiseThatChangesByTheEpochAreThoseOfItsSteps) {
  int asked = 0;
  const auto alpha = [&asked](std::uint64_t t) {
    ++asked;
    const std::uint64_t epoch = t / 7;
    return std::exp(-0.3 * static_cast<double>(epoch));
  };
  const std::vector<NoiseSpan> steps = noise_spans(40, alpha);
  asked = 0;
  const std::vector<NoiseSpan> epochs = noise_spans(40, alpha, 7);
  EXPECT_EQ(asked, 7);  // six epochs, and the first step
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_TRUE(epochs == steps);
  EXPECT_EQ(epochs.back().until, 40u);
}

TEST(AdpNoise, ReleasesOfAStretchAreThoseOfItsSteps) {
  PrivacyPlan p;
  p.noise_multiplier = 2.0;
  p.sampling_threshold = std::uint64_t{1} << 30;
  p.steps = 10;
  p.noise = {{3, 1.0}, {4, 0.5}, {10, 3.0}};
  const auto sigmas = [&](std::uint64_t first, std::uint64_t last) {
    std::vector<double> s;
    for (const privacy::Release& r : step_releases(p, first, last))
      s.insert(s.end(), r.count, sigma_of(r));
    return s;
  };
  EXPECT_EQ(sigmas(0, 10), (std::vector<double>{2, 2, 2, 1, 6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(sigmas(2, 5), (std::vector<double>{2, 1, 6}));
  EXPECT_EQ(sigmas(3, 4), (std::vector<double>{1}));
  EXPECT_TRUE(sigmas(4, 4).empty());
}

TEST(AdpNoise, Theorem41IsItsFormula) {
  // 16 * 256 / (50000 * 12.8) sqrt(log(16 * 100 / 0.5) log(125000) (50 + 50 / 4))
  EXPECT_NEAR(theorem41_sigma(12.8, 1e-5, 50'000.0, 256.0, 100, {{50, 1.0}, {100, 2.0}}),
              0.0064 * std::sqrt(std::log(3200.0) * std::log(125'000.0) * 62.5), 1e-12);
  TrainConfig c = config();
  c.of<AdpSgdOptions>().calibration = Calibration::theorem41;
  c.epsilon = 12.8;  // the paper's 0.8
  const PrivacyPlan plan = plan_of(c);
  EXPECT_GT(plan.noise_multiplier, 2.0);
  EXPECT_LT(guarantee(plan, releases(plan, plan.steps)).epsilon, 2.0);
}

TEST(DpSgdDecay, SigmaFallsByEpoch) {
  TrainConfig c = config();
  c.method = "dpsgd-decay";
  c.of<DpSgdDecayOptions>().noise_decay = 0.01;
  c.steps.reset();
  c.epochs = 5;
  const PrivacyPlan plan = plan_of(c);
  ASSERT_EQ(plan.noise.size(), 5u);
  EXPECT_EQ(plan.noise[0].until, 195u);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_DOUBLE_EQ(plan.noise_multiplier_at(epoch * 195),
                     plan.noise_multiplier * std::exp(-0.01 * static_cast<double>(epoch)));
  const double epsilon = guarantee(plan, releases(plan, plan.steps)).epsilon;
  EXPECT_LE(epsilon, 3.0);
  EXPECT_GT(epsilon, 3.0 * (1.0 - 2e-5));
  c.of<DpSgdDecayOptions>().noise_decay = 0.0;
  EXPECT_TRUE(plan_of(c).noise.empty());
}

/// A short training by method M.
template <class M>
TrainState trained(TrainConfig c, const cases::Case& model, PrivacyPlan plan,
                   std::unique_ptr<Engine> (*make)(const Network&, const EngineSettings&),
                   std::uint64_t steps = 6) {
  const Network net = cases::network_of(model);
  plan.sampling_threshold = std::uint64_t{1} << 30;
  plan.clip_norm = 0.8;
  c.of<AdpSgdOptions>().adaptive_weight = 512.0;
  c.of<AdpSgdOptions>().adaptive_min = 1e-2;
  const M method(cases::context_of(c, net, 4), plan);
  EngineSettings s;
  s.recipe = method.recipe();
  s.key = {{3, 1, 4, 1, 5}};
  const auto engine = make(net, s);
  const Dataset data = cases::examples_for(model, 40);
  engine->load(data);
  TrainState start = cases::weights_for(net);
  if (c.optimizer != OptimizerKind::sgd) start.moment1.assign(net.parameter_count, 0.0f);
  start.step_size_sum = 20.0;
  engine->set_state(start);
  method.run(*engine, 0, 2);
  method.run(*engine, 2, steps);
  return engine->state();
}

TEST(AdpSgd, WithConstantStepsIsDpSgdBitByBit) {
  TrainConfig dp;
  dp.epsilon = 2.0;
  dp.delta = 1e-5;
  dp.batch = 64;
  dp.steps = 100;
  dp.epochs.reset();
  TrainConfig adp = dp;
  adp.method = "adp-sgd";
  const PrivacyPlan plan = plan_of(dp);
  EXPECT_EQ(plan_of(adp), plan);
  for (const auto make : {make_cpu_engine, cuda_engine}) {
    const TrainState a = trained<DpSgd>(dp, kCases[1], plan, make);
    const TrainState b = trained<AdpSgd>(adp, kCases[1], plan_of(adp), make);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.moment1, b.moment1);
    EXPECT_NE(a.parameters, cases::weights_for(cases::network_of(kCases[1])).parameters);
  }
}

TEST(AdpSgd, AdaptiveStepsFollowTheReleasedGradientAsTheOraclesDo) {
  TrainConfig c = config();
  c.optimizer = OptimizerKind::momentum;
  c.schedule = ScheduleKind::adaptive;
  c.lr = 0.3;
  c.steps = 6;
  c.batch = 10;
  PrivacyPlan plan = plan_of(c);
  plan.expected_batch = 10.0;
  for (const auto& model : {kCases[0], kCases[6], kCases[4]}) {
    const TrainState want = trained<AdpSgd>(c, model, plan, reference::make_engine);
    EXPECT_GT(want.step_size_sum, 20.0);
    for (const auto make : {make_cpu_engine, cuda_engine}) {
      const TrainState got = trained<AdpSgd>(c, model, plan, make);
      EXPECT_NEAR(got.step_size_sum, want.step_size_sum, 1e-5 * want.step_size_sum);
      const auto [error, size] =
          cases::distance(got.parameters.data(), want.parameters.data(), want.parameters.size());
      EXPECT_TRUE(error <= 2e-5 * size) << error << " of " << size;
    }
  }
}

TEST(AdpSgd, StepSizesGrowByTheirLeastWhereNothingIsReleased) {
  StepSizeSettings s{.weight = 100.0, .period = 10, .min_growth = 0.25};
  EXPECT_EQ(grown_step_size_sum(s, 3, 20.0, 0.0), 20.25);
  EXPECT_EQ(grown_step_size_sum(s, 13, 20.0, 2.0), 20.0 + 25.0 * 2.0);
  s.weight = 1.0;
  EXPECT_EQ(grown_step_size_sum(s, 9, 20.0, 2.0), 22.0);
}

/// The noise that reaches the parameters at step t has the deviation eta_t alpha_t sigma C / b that
/// is accounted for: chi-square of 26,010 normals at 1e-6.
TEST(AdpSgd, DrawsTheNoiseOfTheStep) {
  TrainConfig c = config();
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1.0;
  const cases::Case& model = kCases[4];
  const Network net = cases::network_of(model);
  PrivacyPlan plan = plan_of(c);
  plan.sampling_threshold = 0;  // nobody is drawn: the step is noise alone
  const AdpSgd method(cases::context_of(c, net, 196), plan);
  EngineSettings s;
  s.recipe = method.recipe();
  s.key = {{9, 9}};
  const auto engine = make_cpu_engine(net, s);
  const Dataset data = cases::examples_for(model, 3);
  engine->load(data);
  const double d = static_cast<double>(net.parameter_count);
  for (const std::uint64_t t : {0u, 500u, 39'199u}) {
    TrainState zero;
    zero.parameters.assign(net.parameter_count, 0.0f);
    engine->set_state(zero);
    method.run(*engine, t, t + 1);
    const double std = method.learning_rate(t + 1) * plan.noise_std_at(t) / plan.expected_batch;
    double square = 0.0;
    for (const float x : engine->state().parameters) square += std::pow(x / std, 2);
    EXPECT_LT(std::fabs(square - d), 4.9 * std::sqrt(2.0 * d)) << t;
  }
}

}  // namespace
}  // namespace cudp
