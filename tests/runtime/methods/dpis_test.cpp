#include "runtime/methods/dpis.hpp"

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/contribution/importance.hpp"
#include "privacy/accountant.hpp"
#include "tests/support/distributions.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Case;
using cases::kCases;

std::unique_ptr<Engine> cuda_engine(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  s.micro_batch = 32;
  return device_engine(net, s);
}
using Make = std::unique_ptr<Engine> (*)(const Network&, const EngineSettings&);

constexpr StepScalars kPlainStep{.learning_rate = -1,
                                 .noise_std = 0,
                                 .inverse_batch = 1,
                                 .bias1 = 1,
                                 .bias2 = 1,
                                 .ema_decay = 0,
                                 .clip_norm = 1};

StepRecipe step_of_dpis(const ImportanceRule& rule) {
  return {.draw = Candidates{rule}, .contribution = AcceptedDirection{}};
}

EngineSettings settings() {
  EngineSettings s;
  s.recipe = step_of_dpis({});
  s.key = {{2, 7, 1, 8, 2, 8}};
  return s;
}

TEST(Importance, ProbabilitiesAreNeverAboveTheRateAndHardlyBelow) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform;
  int capped = 0;
  for (int i = 0; i < 100'000; ++i) {
    ImportanceRule r;
    r.clip = std::exp(4.0 * uniform(random) - 3.0);
    r.multiple = 1.0 + 6.0 * uniform(random);
    r.min_norm = r.clip * std::exp(-5.0 * uniform(random));
    r.rate = std::exp(-7.0 * uniform(random)) * 0.999999 / r.clip;
    const auto seen = static_cast<float>(2.0 * r.clip * uniform(random));
    const auto norm = static_cast<float>(2.0 * r.clip * uniform(random));
    const double estimate =
        std::fmin(r.multiple * std::fmax(std::fmin(seen, r.clip), r.min_norm), 1.0 / r.rate);
    capped += estimate == 1.0 / r.rate ? 1 : 0;
    const double p = r.rate * std::fmin(std::fmin(norm, r.clip), estimate);
    const auto candidate = static_cast<double>(candidate_threshold(r, seen)) * 0x1p-32;
    const auto accepted = static_cast<double>(acceptance_threshold(r, seen, norm)) * 0x1p-32;
    ASSERT_LE(candidate, 1.0);
    ASSERT_LE(accepted, 1.0);
    ASSERT_GE(candidate, estimate * r.rate * (1.0 - 1e-12));
    ASSERT_LE(candidate * accepted, p * (1.0 + 1e-12));
    ASSERT_LE(candidate * accepted, r.rate * r.clip);
    ASSERT_GE(candidate * accepted, p - 3e-10);
  }
  EXPECT_GT(capped, 1000) << "the cap must have been tried";
  const ImportanceRule r{.clip = 1.0, .multiple = 5.0, .min_norm = 0.1, .rate = 0.05};
  EXPECT_EQ(acceptance_threshold(r, 0.5f, NAN), 0u);
  EXPECT_EQ(acceptance_threshold(r, 0.5f, INFINITY), 0u);
  EXPECT_EQ(acceptance_threshold(r, 0.5f, 0.0f), 0u);
  // A norm that lacks squares would make the direction longer than 1, however probable.
  const ImportanceRule tiny{.clip = 1e-20, .multiple = 5.0, .min_norm = 1e-20, .rate = 0.19e20};
  EXPECT_EQ(acceptance_threshold(tiny, 1e-20f, 1e-20f), 0u);
  EXPECT_EQ(accept_candidate(tiny, RandomStream{}, 0, 0x1p-140f, std::vector{1e-20f}.data()), 0.0f);
  EXPECT_EQ(candidate_threshold(r, NAN), candidate_threshold(r, 1.0f));
}

class DpisCase : public testing::TestWithParam<Case> {};

/// Candidates, acceptance, norms kept, sums and noise over replayed steps, against loops in double.
TEST_P(DpisCase, TrainsLikeTheOracle) {
  const Case& c = GetParam();
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 40);
  const ImportanceRule rules[] = {
      {.clip = 1.5, .multiple = 3.0, .min_norm = 0.1, .rate = 8.0 / 40.0},
      {.clip = 1.2, .multiple = 5.0, .min_norm = 0.3, .rate = 0.6},  // the cap binds
  };
  StepScalars s = kPlainStep;
  s.learning_rate = 0.05f;
  s.noise_std = 0.3f;
  s.inverse_batch = 0.1f;
  const auto run = [&](Make make) {
    const auto engine = make(net, settings());
    engine->load(data);
    engine->set_state(cases::weights_for(net));
    engine->measure_norms();
    for (std::uint64_t i = 0; i < 2; ++i)
      engine->run(step_of_dpis(rules[i]), 3 * i, std::vector<StepScalars>(3, s));
    return engine->state();
  };
  const TrainState want = run(reference::make_engine);
  for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}}) {
    const TrainState got = run(make);
    const auto [error, size] =
        cases::distance(got.parameters.data(), want.parameters.data(), want.parameters.size());
    EXPECT_TRUE(error <= 2e-5 * size) << error << " of " << size;
    ASSERT_EQ(got.norms.size(), want.norms.size());
    for (std::size_t i = 0; i < want.norms.size(); ++i)
      EXPECT_NEAR(got.norms[i], want.norms[i], 1e-4 * want.norms[i] + 1e-6) << i;
  }
}
std::vector<Case> small_cases() {
  std::vector<Case> v;
  for (const Case& c : kCases)
    if (cases::network_of(c).parameter_count < 30'000) v.push_back(c);
  return v;
}
INSTANTIATE_TEST_SUITE_P(All, DpisCase, testing::ValuesIn(small_cases()),
                         [](const auto& i) { return std::string(i.param.name); });

/// Examples that are told apart by their gradients: example i has the one feature i, of its own
/// size, so its gradient fills its own column of the weights (and the bias).
struct Apart {
  static constexpr int kExamples = 24;
  Network net = cases::network_of({"apart", "logistic", {kExamples, 1, 1}, 2});
  Dataset data;
  std::vector<double> norms;

  Apart() {
    data.shape = {kExamples, 1, 1};
    data.classes = 2;
    for (int i = 0; i < kExamples; ++i) {
      const double x = 0.2 * std::exp(0.15 * i);
      for (int j = 0; j < kExamples; ++j) data.floats.push_back(i == j ? float(x) : 0.0f);
      data.labels.push_back(static_cast<std::uint8_t>(i % 2));
      norms.push_back(0.5 * std::sqrt(x * x + 1.0));  // at zero weights the slope is 1/2
    }
  }
  TrainState start(const std::vector<float>& seen) const {
    TrainState s;
    s.parameters.assign(net.parameter_count, 0.0f);
    s.norms = seen;
    return s;
  }
};

/// Inclusion probability b n_i / K~ for every example, whatever was seen of it before, also where
/// the cap binds: chi-square at 1e-6. And the estimator's mean against the exact clipped mean:
/// z-tests at 1e-6 together.
TEST(Dpis, IncludesExamplesInProportionToTheirNormsAndIsUnbiased) {
  const Apart apart;
  constexpr int n = Apart::kExamples;
  std::vector<float> seen;
  seen.reserve(n);
  for (int i = 0; i < n; ++i)
    seen.push_back(static_cast<float>(apart.norms[i] * (i % 3 == 0   ? 1.0
                                                        : i % 3 == 1 ? 0.1
                                                                     : 2.0)));
  for (const ImportanceRule& rule :
       {ImportanceRule{.clip = 1.0, .multiple = 4.0, .min_norm = 0.2, .rate = 0.15},
        ImportanceRule{.clip = 1.6, .multiple = 5.0, .min_norm = 0.05, .rate = 0.5}}) {
    EngineSettings s = settings();
    s.threads = 1;
    const auto engine = make_cpu_engine(apart.net, s);
    engine->load(apart.data);
    constexpr int kSteps = 20'000;
    std::vector<double> included(n, 0.0);
    std::vector<double> sum(apart.net.parameter_count, 0.0);
    for (int t = 0; t < kSteps; ++t) {
      engine->set_state(apart.start(seen));
      engine->run(step_of_dpis(rule), static_cast<std::uint64_t>(t), {&kPlainStep, 1});
      const std::vector<float> moved = engine->state().parameters;
      for (int i = 0; i < n; ++i) included[i] += moved[i] != 0.0f ? 1.0 : 0.0;
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += moved[j];
    }
    double chi = 0.0;
    std::vector<double> mean(sum.size(), 0.0);
    std::vector<double> variance(sum.size(), 0.0);
    int capped = 0;
    for (int i = 0; i < n; ++i) {
      const double estimate = std::fmin(
          rule.multiple * std::fmax(std::fmin(seen[i], rule.clip), rule.min_norm), 1.0 / rule.rate);
      capped += estimate == 1.0 / rule.rate ? 1 : 0;
      const double p = rule.rate * std::fmin(std::fmin(apart.norms[i], rule.clip), estimate);
      chi += std::pow(included[i] - kSteps * p, 2) / (kSteps * p * (1.0 - p));
      // g / |g|: the slope is -1/2 or 1/2 times (x, 1)
      const double sign = apart.data.labels[i] == 1 ? -1.0 : 1.0;
      const double x = apart.data.floats[i * n + i];
      const double length = std::sqrt(x * x + 1.0);
      for (const auto& [j, u] :
           {std::pair<int, double>{i, sign * x / length}, {n, sign / length}}) {
        mean[j] += kSteps * p * u;
        variance[j] += kSteps * p * (1.0 - p) * u * u;
      }
    }
    EXPECT_LT(chi, law::chi_squared_quantile_above(n, 1e-6));
    EXPECT_GT(chi, law::chi_squared_quantile(n, 1e-6));
    EXPECT_GT(capped, rule.rate > 0.3 ? 3 : -1);
    for (std::size_t j = 0; j < sum.size(); ++j)  // 5.6 deviations: 2e-8 each, 25 of them
      EXPECT_TRUE(std::fabs(sum[j] - mean[j]) <= 5.6 * std::sqrt(variance[j])) << j;
  }
}

/// One example, certain to be a candidate: its weighted norm is 1 (that is K~ / N~) or nothing,
/// however large or small its gradient is.
TEST(Dpis, AcceptedGradientsAllHaveTheSameNorm) {
  const Case& c = kCases[6];
  const Network net = cases::network_of(c);
  for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}})
    for (const double clip : {1e-3, 1.0, 1e3}) {
      const Dataset data = cases::examples_for(c, 1);
      const auto engine = make(net, settings());
      engine->load(data);
      TrainState state = cases::weights_for(net);
      int accepted = 0;
      for (std::uint64_t t = 0; t < 12; ++t) {
        engine->set_state(state);
        engine->measure_norms();
        const StepRecipe step = step_of_dpis(
            {.clip = clip, .multiple = 5.0, .min_norm = 0.01 * clip, .rate = 0.9 / clip});
        engine->run(step, t, {&kPlainStep, 1});
        const std::vector<float> after = engine->state().parameters;
        const auto [norm, unused] =
            cases::distance(after.data(), state.parameters.data(), after.size());
        if (norm == 0.0) continue;
        ++accepted;
        EXPECT_NEAR(norm, 1.0, 1e-3);  // parameters are floats of size 1
      }
      EXPECT_GT(accepted, clip < 1e3 ? 6 : -1);
    }
}

TEST(Dpis, ExamplesThatAreNotFiniteAreNeverAccepted) {
  const Case& c = kCases[1];
  const Network net = cases::network_of(c);
  Dataset data = cases::examples_for(c, 12);
  for (const float bad : {NAN, INFINITY}) {
    data.floats[7 * 37 + 20] = bad;
    for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}}) {
      const auto engine = make(net, settings());
      engine->load(data);
      engine->set_state(cases::weights_for(net));
      engine->measure_norms();
      EXPECT_EQ(engine->norms()[7], 0.0f);
      const StepRecipe step =
          step_of_dpis({.clip = 2.0, .multiple = 5.0, .min_norm = 1.0, .rate = 0.45});
      engine->run(step, 0, std::vector<StepScalars>(5, kPlainStep));
      for (const float w : engine->state().parameters) ASSERT_TRUE(std::isfinite(w));
      EXPECT_EQ(engine->norms()[7], 0.0f);
    }
  }
}

// --- An epoch's choices and the budget ---

TrainConfig config(std::int64_t epochs = 20) {
  TrainConfig c;
  c.method = "dpis";
  c.epsilon = 2.0;
  c.delta = 1e-5;
  c.batch = 250;
  c.epochs = epochs;
  c.clip_norm = 0.5;
  c.optimizer = OptimizerKind::sgd;
  return c;
}

using NormOfEpoch = std::function<float(std::uint64_t epoch)>;

/// An engine whose norms a test sets; it trains nothing.
class NormsEngine final : public reference::ReferenceEngine {
 public:
  NormsEngine(const Network& network, const EngineSettings& s, const std::vector<float>& given)
      : ReferenceEngine(network, s), given_(given) {}
  void measure_norms() override {}
  std::vector<float> norms() override { return given_; }

 private:
  const std::vector<float>& given_;
};

/// A run of DPIS without training: every epoch prepared, and its steps paid for.
struct Epochs {
  PrivacyPlan plan;
  std::vector<DpisEpoch> epochs;
  std::vector<double> rates;
  std::vector<double> noise;
  bool refused = false;
  double remaining = 0.0;
  privacy::Ledger ledger;
  std::vector<Released> released;

  Epochs(const TrainConfig& c, const NormOfEpoch& norm) {
    std::vector<float> norms;
    Backend backend;
    backend.make_engine = [&](const Network& network, const EngineSettings& s) {
      return std::make_unique<NormsEngine>(network, s, norms);
    };
    cases::MethodTraining<Dpis> training(
        std::make_unique<Dpis>(
            cases::context_of(c, cases::network_of(kCases[0]), TrainingSize{10'000.0, 0.0})),
        cases::examples_for(kCases[0], 2), backend, settings().key.key());
    Dpis& method = *training.method;
    PrivacyBudget& budget = training.budget;
    plan = method.plan();
    for (std::uint64_t t = 0; t < plan.steps && !refused;) {
      norms.assign(10'000, norm(t / method.steps_per_epoch()));
      const std::uint64_t until = method.authorise(budget, t, plan.steps);
      refused = until == t;
      if (refused) break;
      EXPECT_EQ(until, t + method.steps_per_epoch());
      epochs.push_back(method.epoch());
      rates.push_back(method.rate());
      noise.push_back(method.noise_multiplier());
      t = until;
    }
    ledger = budget.ledger();
    released = training.gate.released();
    remaining = budget.filter()->remaining();
  }

  /// Of the ledger, at the order that was fixed before.
  double spent() const {
    return privacy::Accountant({.releases = ledger.releases()},
                               {.kind = privacy::AccountantKind::rdp, .orders = {plan.order}})
        .epsilon(plan.delta - plan.failure)
        .epsilon;
  }
};

TEST(Dpis, WhereEveryNormIsCItIsDpSgd) {
  const TrainConfig c = config();
  const Epochs run(c, [](std::uint64_t) { return 3.0f; });
  ASSERT_EQ(run.epochs.size(), 20u);
  for (std::size_t e = 0; e < 20; ++e) {
    // K' is N C and noise of sigma_K C = 0.02 N C; K~ is at most N C
    EXPECT_LE(run.epochs[e].total, 10'000.0 * 0.5);
    EXPECT_GT(run.epochs[e].total, 10'000.0 * 0.5 * (1.0 - 8.0 * 0.02));
    EXPECT_NEAR(run.noise[e] / run.plan.noise_multiplier, 1.0, 0.15);
    EXPECT_NEAR(run.rates[e], 0.025, 0.025 * 0.15);
  }
  EXPECT_FALSE(run.refused);
}

#ifndef CUDP_TEST_ON_GPU  // a device does not say what it was asked for
/// Epochs have importance rules of their own, and one recorded step.
TEST(Dpis, ATrainingIsRecordedOnceAndWaitsThreeTimesAnEpoch) {
  for (const bool adaptive : {false, true}) {
    TrainConfig c = config(4);
    c.of<DpisOptions>().adaptive_clip = adaptive;
    DeviceLog log;
    Backend backend = choose_backend(Device::cpu);
    backend.make_engine = [&](const Network& network, const EngineSettings& s) {
      return device_engine(network, s, {.log = &log, .runs = false});
    };
    cases::MethodTraining<Dpis> training(
        std::make_unique<Dpis>(
            cases::context_of(c, cases::network_of(kCases[0]), TrainingSize{10'000.0, 0.0})),
        cases::examples_for(kCases[0], 10'000), backend, settings().key.key());
    Dpis& method = *training.method;
    log = {};
    std::set<double> rates;
    for (std::uint64_t t = 0; t < method.plan().steps; t += method.steps_per_epoch()) {
      training.run(t, t + method.steps_per_epoch());
      rates.insert(method.rate());
    }
    EXPECT_EQ(log.recordings, 1);
    // The run's, and the norms' for one sum or two.
    EXPECT_EQ(log.waits, adaptive ? 4 * 3 - 1 : 4 * 2);
    EXPECT_EQ(rates.size() > 1, adaptive) << "norms of 0 give the largest rate, by the norm C";
  }
}
#endif

/// A recipe is read before an epoch is prepared, for its kind; a step of such an epoch is refused.
TEST(Dpis, AStepIsOfAcceptedDirectionsOfCandidates) {
  const Dpis method(
      cases::context_of(config(), cases::network_of(kCases[0]), TrainingSize{10'000.0, 0.0}));
  const StepRecipe step = method.recipe();
  EXPECT_TRUE(std::holds_alternative<Candidates>(step.draw));
  EXPECT_TRUE(std::holds_alternative<AcceptedDirection>(step.contribution));
  EXPECT_EQ(step.optimizer, optimizer_settings(config()));
  EXPECT_EQ(bound_of(step.contribution, 0.5).norm, 1.0);
  EXPECT_THROW(method.scalars(0), Error);
}

TEST(Dpis, SpendsItsBudgetAndNeverMoreAndTurnsSmallNormsIntoLessNoise) {
  const TrainConfig c = config(40);
  const Epochs run(c, [](std::uint64_t e) { return 0.25f / (1.0f + 0.2f * float(e)); });
  ASSERT_EQ(run.epochs.size(), 40u);
  EXPECT_FALSE(run.refused);
  EXPECT_GE(run.remaining, 0.0);
  EXPECT_LT(run.remaining, 1e-6);
  // sigma_G falls, as in figure 1
  for (std::size_t e = 1; e < 32; ++e)
    EXPECT_LE(run.epochs[e].sigma, run.epochs[e - 1].sigma * 1.01) << e;
  EXPECT_LT(run.epochs[31].sigma, 0.95 * run.epochs[0].sigma);
  EXPECT_LE(run.epochs[0].sigma, run.plan.noise_multiplier * 1.02);
  for (std::size_t e = 0; e < 40; ++e) {
    EXPECT_NEAR(run.rates[e], 250.0 * 0.5 / run.epochs[e].total, 1e-8);
    EXPECT_NEAR(run.noise[e], run.epochs[e].sigma * 0.5 * 10'000.0 / run.epochs[e].total, 1e-9);
    EXPECT_GT(run.epochs[e].total, 250.0 * 0.5);
  }
  // What the ledger holds is within the promise at the order that was fixed before.
  const double spent = run.spent();
  EXPECT_LE(spent, 2.0 * (1.0 + 1e-12));
  EXPECT_GT(spent, 1.99);
}

TEST(Dpis, KeepsItsBudgetWhereNormsGrow) {
  const TrainConfig c = config(40);
  const Epochs run(c, [](std::uint64_t e) { return e < 35 ? 0.02f : 5.0f; });
  EXPECT_GE(run.remaining, 0.0);
  const double spent = run.spent();
  EXPECT_LE(spent, 2.0 * (1.0 + 1e-12));
}

TEST(Dpis, TheClippingNormFollowsTheMeanNorm) {
  TrainConfig c = config(10);
  c.of<DpisOptions>().adaptive_clip = true;
  const Epochs run(c, [](std::uint64_t) { return 0.8f; });
  ASSERT_EQ(run.epochs.size(), 10u);
  EXPECT_EQ(run.epochs[0].clip_norm, 0.5);
  // mean norm 0.8, noise 0.02 C* = 0.04
  for (std::size_t e = 1; e < 10; ++e) EXPECT_NEAR(run.epochs[e].clip_norm, 0.8, 6.0 * 0.04);
  EXPECT_GE(run.remaining, 0.0);
  EXPECT_EQ(run.plan.epoch_releases, 20u);
  // From the second epoch on the next clipping norm's sum comes first, of norms cut to 4 C_1.
  ASSERT_EQ(run.released.size(), 19u);
  for (std::size_t i = 0; i < 19; ++i) {
    const GaussianRelease& r = run.released[i].release;
    EXPECT_EQ(r.step, (i + 1) / 2);
    EXPECT_EQ(r.purpose, i % 2 == 0 ? Stream::norm_total : Stream::largest_norms);
    EXPECT_EQ(r.sensitivity, i % 2 == 0 ? run.epochs[(i + 1) / 2].clip_norm : 2.0);
    EXPECT_GE(r.noise_std / r.sensitivity, run.plan.epoch_noise * (1.0 - 0x1p-52));
    EXPECT_LE(r.noise_std / r.sensitivity, run.plan.epoch_noise * (1.0 + 1e-14));
    EXPECT_LE(r.grid, r.noise_std * 0x1p-36);
  }
}

/// K' - sum_i n_i has the deviation sigma_K C that is paid for: chi-square of 400 epochs at 1e-6.
TEST(Dpis, NoiseOnTheTotalIsWhatIsPaidFor) {
  TrainConfig c = config(400);
  c.clip_norm = 1.0;
  const Epochs run(c, [](std::uint64_t) { return 0.5f; });
  ASSERT_EQ(run.epochs.size(), 400u);
  double square = 0.0;
  for (const DpisEpoch& e : run.epochs) square += std::pow((e.total - 5000.0) / 200.0, 2);
  EXPECT_GT(square, 277.0);
  EXPECT_LT(square, 552.0);
}

}  // namespace
}  // namespace cudp
