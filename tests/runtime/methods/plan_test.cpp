#include "runtime/methods/plan.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "privacy/verify/sensitivity_limit.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/make_plan.hpp"
#include "tests/support/distributions.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/print.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using cases::plan_of;

Network cnn() {
  return build_network(parse_model(builtin_model("cnn"), "cnn", 10), {1, 28, 28}, 10);
}

TrainConfig plan_config() {
  TrainConfig c;
  c.epsilon = 3.0;
  c.delta = 1e-5;
  c.batch = 512;
  c.epochs = 40;
  c.clip_norm = 0.1;
  return c;
}

DataSplit data_of(std::size_t size, bool is_public) {
  DataSplit d;
  d.train.labels.resize(size);
  d.size_is_public = is_public;
  return d;
}

TEST(Plan, HoldsTheExactRateAndTheSteps) {
  const TrainingSize size{60'000.0, 0.0};
  const PrivacyPlan p = plan_of(plan_config(), cnn(), size, kCpuArithmetic);
  EXPECT_GE(p.sampling_rate(), 512.0 / 60'000.0);
  EXPECT_LT(p.sampling_rate(), 512.0 / 60'000.0 + 0x1p-32);
  EXPECT_EQ(p.sampling_rate() * 0x1p32, static_cast<double>(p.sampling_threshold));
  EXPECT_EQ(p.steps, 40u * 117u);
  EXPECT_EQ(p.expected_batch, 512.0);
  EXPECT_TRUE(p.before.empty());
  EXPECT_GT(p.sensitivity, p.clip_norm);
  EXPECT_LT(p.sensitivity, 1.01 * p.clip_norm);
  const double epsilon = guarantee(p, releases(p, p.steps)).epsilon;
  EXPECT_LE(epsilon, 3.0);
  EXPECT_GE(epsilon, 3.0 * (1.0 - 2e-5));
  TrainConfig by_steps = plan_config();
  by_steps.epochs.reset();
  by_steps.steps = 77;
  EXPECT_EQ(plan_of(by_steps, cnn(), size, kCpuArithmetic).steps, 77u);
}

TEST(Plan, SigmaAloneSetsNoBudgetAndBothMustAgree) {
  TrainConfig c = plan_config();
  c.epsilon.reset();
  c.sigma = 0.5;
  const TrainingSize size{60'000.0, 0.0};
  const PrivacyPlan p = plan_of(c, cnn(), size, kCpuArithmetic);
  EXPECT_EQ(p.noise_multiplier, 0.5);
  const double epsilon = guarantee(p, releases(p, p.steps)).epsilon;
  EXPECT_GT(epsilon, 3.0);
  c.epsilon = 1.001 * epsilon;
  EXPECT_EQ(plan_of(c, cnn(), size, kCpuArithmetic), p);
  c.epsilon = 0.999 * epsilon;
  EXPECT_THROW(plan_of(c, cnn(), size, kCpuArithmetic), BudgetError);
}

/// A noisy size decides as a public one does: it has been released.
TEST(Plan, ABatchLargerThanTheDataIsRefused) {
  TrainConfig c = plan_config();
  c.sigma = 2000.0;
  for (const double noise : {0.0, 50.0}) {
    EXPECT_THROW(plan_of(c, cnn(), {511.0, noise}, kCpuArithmetic), InputError);
    EXPECT_THROW(plan_of(c, cnn(), {1.0, noise}, kCpuArithmetic), InputError);
    const PrivacyPlan all = plan_of(c, cnn(), {512.0, noise}, kCpuArithmetic);
    EXPECT_EQ(all.sampling_threshold, std::uint64_t{1} << 32);
    EXPECT_EQ(all.expected_batch, 512.0);
  }
  c.sigma.reset();
  c.method = "dpis";
  for (const double noise : {0.0, 50.0})
    EXPECT_THROW(plan_of(c, cnn(), {512.0, noise}, kCpuArithmetic), InputError);
}

TEST(Plan, WhatPromisesNextToNothingIsRefused) {
  TrainConfig c = plan_config();
  c.epsilon.reset();
  c.sigma = 0.0625;
  EXPECT_THROW(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic), BudgetError);
  c.allow_weak_privacy = true;
  EXPECT_GT(guarantee(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic),
                      releases(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic), 1))
                .epsilon,
            1.0);
}

/// Squares of numbers below 2^-63 vanish from a norm in float32.
TEST(Plan, AClippingNormWhoseSquaresVanishIsRefused) {
  TrainConfig c = plan_config();
  const double least = std::sqrt(static_cast<double>(cnn().parameter_count)) * 0x1p-56;
  c.clip_norm = 0.99 * least;
  EXPECT_THROW(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic), InputError);
  c.clip_norm = 1.01 * least;
  EXPECT_NO_THROW(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic));
  c.clipping = Clipping::per_layer;
  EXPECT_THROW(plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic), InputError);
}

/// A batch that is far finer than the count is refused, with what to type; one that follows from
/// the count is not.
TEST(Plan, ACountThatIsTooCoarseForTheBatchSaysWhatToType) {
  TrainConfig c = plan_config();
  c.epsilon = 0.0005;
  const auto refusal = [&](bool batch_follows = false) -> std::string {
    try {
      size_noise(data_of(5000, false), c, batch_follows);
      return "";
    } catch (const BudgetError& e) {
      return e.what();
    }
  };
  const double noise = privacy::split_for_count(0.0005, 1e-5, 1).sigma;
  ASSERT_GT(noise, 51'200.0);
  c.batch = static_cast<std::int64_t>(std::ceil(noise / 100.0));
  EXPECT_EQ(refusal(), "");
  const std::string enough = std::to_string(c.batch);
  c.batch = 512;
  EXPECT_NE(refusal().find("too coarse for batches of 512; raise --epsilon, type --batch " +
                           enough + " or more, or pass --size-is-public"),
            std::string::npos)
      << refusal();
  EXPECT_EQ(refusal(true), "");
  // These have no batch.
  c.method = "outpert";
  c.epsilon = 1e-4;
  EXPECT_NE(refusal().find("too coarse to train with; raise --epsilon, or pass"), std::string::npos)
      << refusal();
}

/// Less noise than a run may have would be enough for so few steps of so low a rate: it has the
/// least one, in place of a refusal by a count that was paid for.
TEST(Plan, NoCountIsTooLargeForTheNoise) {
  TrainConfig c = plan_config();
  c.batch = 16;
  c.epochs.reset();
  c.steps = 1;
  for (const double rows : {1e3, 1e6, 1e9}) {
    const PrivacyPlan p = plan_of(c, cnn(), {rows, 0.0}, kCpuArithmetic);
    EXPECT_GE(p.noise_multiplier, kMinNoiseMultiplier) << rows;
    EXPECT_LE(guarantee(p, releases(p, 1)).epsilon, *c.epsilon) << rows;
  }
  const PrivacyPlan p = plan_of(c, cnn(), {1e9, 0.0}, kCpuArithmetic);
  EXPECT_NEAR(p.noise_multiplier, kMinNoiseMultiplier, 1e-9);
  c.sigma = 0.06;
  EXPECT_THROW(plan_of(c, cnn(), {1e9, 0.0}, kCpuArithmetic), BudgetError);
}

TEST(Plan, APrivateSizeIsNoisyAndPaidFor) {
  const TrainConfig c = plan_config();
  const auto released = [&](const DataSplit& data, double noise, const RandomKey& key) {
    Gate gate(c.rng, key, all_paid());
    return training_size(data, noise, gate);
  };
  const RandomKey key{{1, 2, 3}};
  EXPECT_EQ(size_noise(data_of(5000, true), c), 0.0);
  EXPECT_EQ(released(data_of(5000, true), 0.0, key).value, 5000.0);
  const double noise = size_noise(data_of(5000, false), c);
  const TrainingSize size = released(data_of(5000, false), noise, key);
  // A whole number: of a number with a fraction the last bits would tell what was added to what.
  EXPECT_EQ(size.value, std::round(size.value));
  EXPECT_GE(released(data_of(1, false), 1e6, {{7}}).value, 1.0);
  const privacy::CountSplit split = *count_split(c, data_of(5000, false));
  EXPECT_EQ(split, privacy::split_for_count(3.0, 1e-5, 1));
  EXPECT_EQ(size.noise, split.sigma);
  EXPECT_NE(size.value, 5000.0);
  EXPECT_LT(std::fabs(size.value - 5000.0), 7.6 * size.noise);
  const PrivacyPlan p = plan_of(c, cnn(), size, kCpuArithmetic);
  // The size has paid for itself: the plan is that of a public one, for the rest of the budget.
  EXPECT_EQ(releases(p, 0), std::vector<privacy::Release>{});
  ASSERT_EQ(releases(p, p.steps).size(), 1u);
  EXPECT_EQ(p.order, 0.0);
  EXPECT_EQ(p.delta, split.training_delta);
  EXPECT_EQ(p.count_epsilon, split.count_epsilon);
  EXPECT_LE(guarantee(p, releases(p, p.steps)).epsilon, split.training_epsilon);
  TrainConfig rest = c;
  rest.epsilon = split.training_epsilon;
  rest.delta = split.training_delta;
  const PrivacyPlan known = plan_of(rest, cnn(), {size.value, 0.0}, kCpuArithmetic);
  EXPECT_NEAR(p.noise_multiplier, known.noise_multiplier, 2e-5 * known.noise_multiplier);
  EXPECT_LT(p.noise_multiplier,
            1.05 * plan_of(c, cnn(), {size.value, 0.0}, kCpuArithmetic).noise_multiplier);
  // The noise has the variance that is paid for: 400 keys, chi-square at 1e-6.
  double squares = 0.0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const double z = (released(data_of(5000, false), noise, {{i, 9}}).value - 5000.0) / size.noise;
    squares += z * z;
  }
  EXPECT_GT(squares, 277.0);
  EXPECT_LT(squares, 552.0);
}

/// 2.4 million rows, batches of 512, two epochs: at one Renyi order for all, fixed by the budget
/// alone, the noise was 1.1431. A method whose proof has Gaussian releases as terms needs no part.
TEST(Plan, APrivateSizeCostsOnePercentOfNoiseWhereThereAreFewSteps) {
  TrainConfig c = plan_config();
  c.epsilon = 1.0;
  c.delta = 1e-7;
  c.epochs = 2;
  const double sigma = plan_of(c, cnn(), {2.4e6, 110.0}, kCpuArithmetic).noise_multiplier;
  EXPECT_LT(sigma, 0.6557);
  EXPECT_GT(sigma, plan_of(c, cnn(), {2.4e6, 0.0}, kCpuArithmetic).noise_multiplier);
  for (const MethodEntry& method : methods()) {
    c.method = method.name;
    if (!method.gives_privacy) continue;
    EXPECT_EQ(count_split(c, data_of(5000, false)).has_value(), !method.linear_model) << c.method;
    EXPECT_FALSE(count_split(c, data_of(5000, true)).has_value()) << c.method;
  }
}

TEST(Plan, AffordableStepsAreTheMostThatFit) {
  TrainConfig c = plan_config();
  const PrivacyPlan p = plan_of(c, cnn(), {60'000.0, 0.0}, kCpuArithmetic);
  EXPECT_EQ(affordable_steps(p, {}, 3.0, 0, p.steps), p.steps);
  const std::vector<privacy::Release> already = releases(p, 1000);
  EXPECT_EQ(affordable_steps(p, already, 3.0, 1000, p.steps), p.steps - 1000);
  EXPECT_EQ(affordable_steps(p, releases(p, p.steps), 3.0, p.steps, 10), 0u);
  const std::uint64_t most = affordable_steps(p, {}, 1.5, 0, p.steps);
  EXPECT_LE(guarantee(p, releases(p, most)).epsilon, 1.5);
  EXPECT_GT(guarantee(p, releases(p, most + 1)).epsilon, 1.5);
}

TEST(Rounding, RoundingErrorFollowsItsFormula) {
  const double u = 0x1p-24;
  // The largest layer of cnn has 16,384 weights: its norm's error stays below the floor.
  const double grid = 0.5 * std::sqrt(26'010.0) * 0x1p-20;
  for (const Arithmetic& a : {kCpuArithmetic, kCudaArithmetic})
    EXPECT_NEAR(sensitivity_rounding_error(cnn(), a),
                (1.0 + 0x1p-13) * (1.0 + 4.0 * u) - 1.0 + grid, 1e-15);
  const Network wide = build_network(
      parse_model("name='w'\nlayers=[{type='dense',name='a',out=2000},{type='dense',name='b',"
                  "out='outputs'}]",
                  "w", 10),
      {2000, 1, 1}, 10);
  EXPECT_GT(sensitivity_rounding_error(wide, kCudaArithmetic), 4e6 / 8.0 / 2.0 * u);
  EXPECT_LT(sensitivity_rounding_error(wide, kCpuArithmetic), 1.3e-3);
}

/// Whatever the batch, and for every model that has a preset.
TEST(Rounding, IsAHalfThousandthOfTheClippingNormAtMost) {
  const struct {
    const char* model;
    Shape input;
  } kModels[] = {{"cnn", {1, 28, 28}},
                 {"cifar-cnn", {3, 32, 32}},
                 {"logistic", {124, 1, 1}},
                 {"scatter-cnn", {81, 7, 7}},
                 {"scatter-linear", {81, 7, 7}},
                 {"scatter-cifar-cnn", {243, 8, 8}},
                 {"mlp", {60, 1, 1}}};
  for (const auto& m : kModels) {
    const Network net =
        build_network(parse_model(builtin_model(m.model), m.model, 10), m.input, 10);
    EXPECT_LE(sensitivity_rounding_error(net, kCpuArithmetic), 5e-4) << m.model;
  }
}

/// verify's own formula allows what any engine's certificate states, and little more.
TEST(Rounding, IsWithinTheLimitOfVerify) {
  const struct {
    const char* model;
    Shape input;
    double most;
  } kModels[] = {{"mlp", {1, 28, 28}, 3.4e-3}, {"cnn", {1, 28, 28}, 3e-4}};
  for (const auto& m : kModels) {
    const Network net =
        build_network(parse_model(builtin_model(m.model), m.model, 10), m.input, 10);
    verify::GradientSize size;
    for (const ParameterTensor& t : net.parameters) {
      size.all += static_cast<double>(t.touched);
      size.largest_tensor = std::max(size.largest_tensor, static_cast<double>(t.touched));
    }
    for (const double shift : {0.0, kLargestShift})
      for (const Arithmetic& a : {kCpuArithmetic, kCudaArithmetic})
        EXPECT_LE(0.1 * (1.0 + sensitivity_rounding_error(net, a, shift)),
                  verify::sensitivity_limit(0.1, size, shift > 0.0))
            << m.model;
    EXPECT_LE(verify::sensitivity_limit(0.1, size, false), 0.1 * (1.0 + m.most)) << m.model;
  }
}

/// Taking one example away moves the sum by C and that error at most, and every other example adds
/// the same: so to the bit the difference is what the example adds alone.
TEST(Rounding, ExamplesAddTheSameInEveryCompany) {
  for (const char* model : {"cnn", "mlp"}) {
    const Network net =
        build_network(parse_model(builtin_model(model), model, 10), {1, 28, 28}, 10);
    const cases::Case c{model, model, {1, 28, 28}, 10};
    Dataset all = cases::examples_for(c, 7);  // their sum's integers fit into a float
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 32};
    s.recipe.optimizer = {.kind = OptimizerKind::momentum};
    s.threads = 1;
    const auto sum = [&](const Dataset& data) {
      const auto engine = make_cpu_engine(net, s);
      TrainState start = cases::weights_for(net);
      start.moment1.assign(start.parameters.size(), 0.0f);
      engine->load(data);
      engine->set_state(start);
      const StepScalars step = cases::still(0.0f, 0.1f);
      engine->run(s.recipe, 0, {&step, 1});
      return engine->state().moment1;
    };
    Dataset less = all;
    less.bytes.erase(less.bytes.begin(), less.bytes.begin() + 784);
    less.labels.erase(less.labels.begin());
    Dataset one = all;
    one.bytes.resize(784);
    one.labels.resize(1);
    const std::vector<float> a = sum(all);
    const std::vector<float> b = sum(less);
    const std::vector<float> alone = sum(one);
    double square = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double moved = static_cast<double>(a[j]) - static_cast<double>(b[j]);
      ASSERT_EQ(moved, static_cast<double>(alone[j])) << model << " " << j;
      square += moved * moved;
    }
    EXPECT_LE(std::sqrt(square), 0.1 * (1.0 + sensitivity_rounding_error(net, kCpuArithmetic)));
    EXPECT_GT(std::sqrt(square), 0.0999);
  }
}

}  // namespace
}  // namespace cudp
