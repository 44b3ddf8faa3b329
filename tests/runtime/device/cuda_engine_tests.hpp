#pragma once
// What the CUDA engine must do, whatever its kernels run on:
// tests/runtime/device/cuda_engine_test.cpp tries it under the emulator, tests/gpu/ on a device.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {

/// An engine on some device.
struct DeviceBackend {
  const char* name;
  std::unique_ptr<Engine> (*make)(const Network&, const EngineSettings&);
};
inline void PrintTo(const DeviceBackend& b, std::ostream* os) { *os << b.name; }

namespace {

using cases::Case;

class CudaEngine : public testing::TestWithParam<std::tuple<Case, DeviceBackend>> {
 protected:
  const Case& model() const { return std::get<0>(GetParam()); }
  std::unique_ptr<Engine> engine(const EngineSettings& settings) const {
    return std::get<1>(GetParam()).make(net_, settings);
  }
  const Network net_ = cases::network_of(std::get<0>(GetParam()));
  /// Whether an example takes so long under the emulator and the interpreter that there are few.
  const bool large_ = net_.parameter_count > 20'000;
};

TEST_P(CudaEngine, PerExampleGradientsNormsAndLosses) {
  const Dataset data = cases::examples_for(model(), 7);
  EngineSettings settings;
  settings.micro_batch = 32;
  const auto device = engine(settings);
  reference::ReferenceEngine oracle(net_, {});
  for (Engine* e : {device.get(), static_cast<Engine*>(&oracle)}) {
    e->load(data);
    e->set_state(cases::weights_for(net_));
  }
  const std::uint32_t some[] = {6, 0, 3, 4};
  const PerExample got = device->per_example(some, true);
  const PerExample want = oracle.per_example(some, true);
  const std::size_t d = net_.parameter_count;
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (std::size_t e = 0; e < std::size(some); ++e) {
    EXPECT_NEAR(got.losses[e], want.losses[e], 1e-5 * (1 + want.losses[e]));
    for (const ParameterTensor& t : net_.parameters) {
      const auto [error, size] = cases::distance(got.gradients.data() + e * d + t.offset,
                                                 want.gradients.data() + e * d + t.offset, t.size);
      EXPECT_TRUE(error <= 1e-5 * size + 1e-6)
          << "example " << e << ", " << t.name << ": " << error;
    }
    const auto [error, size] =
        cases::distance(got.gradients.data() + e * d, want.gradients.data() + e * d, d);
    EXPECT_TRUE(error <= 1e-5 * size + 1e-12) << "example " << e << ": " << error;
    for (int g = 0; g < net_.groups; ++g) {
      const std::size_t at =
          e * static_cast<std::size_t>(net_.groups) + static_cast<std::size_t>(g);
      EXPECT_NEAR(got.squared_norms[at], want.squared_norms[at],
                  2e-5 * want.squared_norms[at] + 1e-9)
          << "example " << e << ", layer " << g;
    }
  }
  // The same numbers in another place, beside others: neighbouring data sets differ in one
  // example's share alone.
  const std::uint32_t moved[] = {1, 4, 3, 0, 6};
  const PerExample again = device->per_example(moved, true);
  const auto same = [](const std::vector<float>& a, std::size_t i, const std::vector<float>& b,
                       std::size_t j, std::size_t n) {
    return std::equal(a.begin() + static_cast<std::ptrdiff_t>(i * n),
                      a.begin() + static_cast<std::ptrdiff_t>((i + 1) * n),
                      b.begin() + static_cast<std::ptrdiff_t>(j * n));
  };
  for (std::size_t e = 0; e < std::size(some); ++e) {
    EXPECT_TRUE(same(got.gradients, e, again.gradients, 4 - e, d)) << "example " << some[e];
    EXPECT_TRUE(same(got.squared_norms, e, again.squared_norms, 4 - e,
                     static_cast<std::size_t>(net_.groups)))
        << "example " << some[e];
  }
}

TEST_P(CudaEngine, ClippedSumOfAPoissonBatch) {
  const Dataset data = cases::examples_for(model(), 24);
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 31};
    s.recipe.contribution = ClippedGradient{kind, 0.01f};
    s.diagnostics = true;
    const auto device = engine(s);
    reference::ReferenceEngine oracle(net_, s);
    const auto got = cases::clipped_sum(*device, s.recipe, net_, data, 0.7f);
    const auto want = cases::clipped_sum(oracle, s.recipe, net_, data, 0.7f);
    EXPECT_EQ(device->sampled(3), oracle.sampled(3));
    const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
    EXPECT_TRUE(error <= 1e-5 * size + 1e-5 + cases::grid_error(0.7, want.size(), 24))
        << error << " of " << size;
    const Diagnostics seen = device->diagnostics();
    const Diagnostics truth = oracle.diagnostics();
    EXPECT_EQ(seen.examples, truth.examples);
    EXPECT_EQ(seen.clipped, truth.clipped);
    EXPECT_NEAR(seen.loss(), truth.loss(), 1e-5 * truth.loss());
    EXPECT_NEAR(seen.norm(), truth.norm(), 1e-5 * truth.norm());
    EXPECT_EQ(device->diagnostics().examples, 0u) << "reading clears";
  }
}

TEST_P(CudaEngine, DoesNotDependOnTheMicroBatch) {
  // About half of them are drawn.
  const Dataset data = cases::examples_for(model(), large_ ? 44 : 90);
  std::vector<float> first;
  for (const int micro_batch : {0, 1, large_ ? 16 : 64}) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 31};
    s.micro_batch = micro_batch;
    const auto sum = cases::clipped_sum(*engine(s), s.recipe, net_, data, 0.7f);
    if (first.empty()) first = sum;
    EXPECT_EQ(first, sum) << "micro-batch " << micro_batch;
  }
}

/// Norms of all examples, candidates, who of them is accepted, the norms that they leave, and the
/// sum of directions: like the oracle, and the same bits whatever the micro-batch is.
TEST_P(CudaEngine, SamplesByImportance) {
  const Dataset data = cases::examples_for(model(), net_.parameter_count < 100'000 ? 30 : 10);
  EngineSettings s;
  s.recipe = {.draw = Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.2, .rate = 0.3}},
              .contribution = AcceptedDirection{}};
  s.key = {{3, 1, 4, 1, 5, 9, 2, 6}};
  s.diagnostics = true;
  const auto results = [&](Engine& e) {
    e.load(data);
    e.set_state(cases::weights_for(net_));
    e.measure_norms();
    std::vector<float> norms = e.norms();
    // The sums that an epoch releases are of integers, and those that the norms make on the host.
    for (const double max_norm : {0.4, 3.0}) {
      std::uint64_t sum = 0;
      for (const float norm : norms)
        sum += static_cast<std::uint64_t>(std::fmin(static_cast<double>(norm), max_norm) / 0x1p-28);
      EXPECT_EQ(e.norm_total(max_norm, 0x1p-28), sum);
    }
    e.run(s.recipe, 3, std::vector<StepScalars>(2, cases::still(0.01f)));
    return std::pair(std::move(norms), e.state());
  };
  reference::ReferenceEngine oracle(net_, s);
  const auto want = results(oracle);
  std::vector<float> first;
  for (const int micro_batch : {0, 1}) {
    s.micro_batch = micro_batch;
    const auto device = engine(s);
    const auto got = results(*device);
    EXPECT_GT(device->diagnostics().examples, 2u) << "candidates";
    ASSERT_EQ(got.first.size(), want.first.size());
    for (std::size_t i = 0; i < want.first.size(); ++i) {
      EXPECT_NEAR(got.first[i], want.first[i], 2e-5f * want.first[i] + 1e-15f) << i;
      EXPECT_NEAR(got.second.norms[i], want.second.norms[i], 1e-4f * want.second.norms[i] + 1e-15f)
          << i;
    }
    const std::vector<float>& moved = got.second.parameters;
    const auto [error, size] =
        cases::distance(moved.data(), want.second.parameters.data(), moved.size());
    EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
    if (first.empty()) first = moved;
    EXPECT_EQ(moved, first) << "micro-batch " << micro_batch;
    EXPECT_NE(moved, cases::weights_for(net_).parameters);
  }
}

TEST_P(CudaEngine, NonFiniteExamplesAndEmptyBatchesContributeNothing) {
  if (model().text.words > 0) GTEST_SKIP() << "of texts, TextEngine has it";
  const std::size_t count = large_ ? 6 : 12, wrong = large_ ? 3 : 7;
  Dataset data = cases::as_floats(cases::examples_for(model(), count));
  const auto features = static_cast<std::size_t>(model().input.size());
  const auto erase = [](auto& v, std::size_t at, std::size_t n) {
    const auto from = v.begin() + static_cast<std::ptrdiff_t>(at);
    v.erase(from, from + static_cast<std::ptrdiff_t>(n));
  };
  Dataset kept = data;
  erase(kept.floats, wrong * features, features);
  erase(kept.labels, wrong, 1);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  s.diagnostics = true;
  const auto want = cases::clipped_sum(*engine(s), s.recipe, net_, kept);
  for (const float bad : {NAN, INFINITY}) {
    // An activation in front would make it finite, which is as good.
    if (bad == INFINITY && std::holds_alternative<Activate>(net_.layers[0].layer)) continue;
    data.floats[wrong * features + features / 2] = bad;
    const auto device = engine(s);
    const auto got = cases::clipped_sum(*device, s.recipe, net_, data);
    const Diagnostics diagnostics = device->diagnostics();
    EXPECT_EQ(diagnostics.examples, count);
    EXPECT_EQ(diagnostics.non_finite, 1u) << bad;
    ASSERT_EQ(got, want) << bad;
    ASSERT_EQ(cases::clipped_sum(*device, s.recipe, net_, data), want) << "the same batch again";
  }
  s.recipe.draw = Poisson{0};
  for (const float v : cases::clipped_sum(*engine(s), s.recipe, net_, kept)) ASSERT_EQ(v, 0.0f);
}

TEST_P(CudaEngine, GivesLogits) {
  const std::size_t count = large_ ? 20 : 50;
  const Dataset data = cases::examples_for(model(), count);
  EngineSettings s;
  s.micro_batch = large_ ? 16 : 32;
  const auto device = engine(s);
  reference::ReferenceEngine oracle(net_, s);
  const TrainState state = cases::weights_for(net_);
  for (Engine* e : {device.get(), static_cast<Engine*>(&oracle)}) e->set_state(state);
  const std::vector<float> got = device->logits(data);
  const std::vector<float> want = oracle.logits(data);
  ASSERT_EQ(got.size(), count * static_cast<std::size_t>(net_.outputs));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::fabs(want[i]))) << i;
  Dataset none = data;
  none.labels.clear();
  EXPECT_TRUE(device->logits(none).empty());
}

/// Noise, sampling, every optimizer and the average, over steps that are replayed, against the
/// oracle.
TEST_P(CudaEngine, TrainsLikeTheOracle) {
  const Dataset data = cases::examples_for(model(), 40);
  std::vector<OptimizerKind> kinds{OptimizerKind::momentum};
  if (net_.parameter_count < 1'000)
    kinds.insert(kinds.end(), {OptimizerKind::sgd, OptimizerKind::nesterov, OptimizerKind::adam,
                               OptimizerKind::adamw});
  for (const OptimizerKind kind : kinds) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 29};
    s.recipe.optimizer.kind = kind;
    s.recipe.optimizer.weight_decay = 1e-3f;
    s.recipe.optimizer.keep_average = kind != OptimizerKind::sgd;
    s.generator = kind == OptimizerKind::adam ? Generator::philox : Generator::chacha20;
    s.key = {{1, 2, 3, 4, 5, 6, 7, 8}};
    TrainState state = cases::weights_for(net_);
    if (has_first_moment(kind)) state.moment1.assign(net_.parameter_count, 0.0f);
    if (has_second_moment(kind)) state.moment2.assign(net_.parameter_count, 0.0f);
    if (s.recipe.optimizer.keep_average) state.average = state.parameters;
    std::vector<StepScalars> scalars;
    scalars.reserve(5);
    for (int i = 0; i < 5; ++i)
      scalars.push_back({.learning_rate = 0.02f / static_cast<float>(1 + i),
                         .noise_std = 0.3f,
                         .inverse_batch = 0.2f,
                         .bias1 = 1.0f / (1.0f - std::pow(0.9f, static_cast<float>(i + 1))),
                         .bias2 = 1.0f / (1.0f - std::pow(0.999f, static_cast<float>(i + 1))),
                         .ema_decay = 0.6f,
                         .clip_norm = 0.9f});
    const auto device = engine(s);
    reference::ReferenceEngine oracle(net_, s);
    for (Engine* e : {device.get(), static_cast<Engine*>(&oracle)}) {
      e->load(data);
      e->set_state(state);
      e->run(s.recipe, 7, std::span(scalars).first(2));
      e->run(s.recipe, 9, std::span(scalars).subspan(2));
    }
    const TrainState got = device->state();
    const TrainState want = oracle.state();
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b,
                         double tolerance) {
      ASSERT_EQ(a.size(), b.size());
      const auto [error, size] = cases::distance(a.data(), b.data(), b.size());
      EXPECT_TRUE(error <= tolerance * size) << error << " of " << size;
    };
    same(got.parameters, want.parameters, 1e-5);
    same(got.moment1, want.moment1, 1e-4);
    same(got.moment2, want.moment2, 1e-4);
    same(got.average, want.average, 1e-5);
  }
}

/// The same sampled sets, noise and gradients as the CPU's, example by example.
TEST_P(CudaEngine, AgreesWithTheCpu) {
  const Dataset data = cases::examples_for(model(), 12);
  EngineSettings s;
  s.key = {{8, 7, 6, 5, 4, 3, 2, 1}};
  s.recipe.draw = Poisson{std::uint64_t{1} << 31};
  const auto device = engine(s);
  const auto cpu = make_cpu_engine(net_, s);
  const StepScalars scalars{.learning_rate = 0.1f,
                            .noise_std = 0.3f,
                            .inverse_batch = 0.2f,
                            .bias1 = 1,
                            .bias2 = 1,
                            .ema_decay = 0,
                            .clip_norm = 0.9f};
  PerExample single[2];
  TrainState after[2];
  const std::uint32_t some[] = {1, 5};
  for (Engine* e : {device.get(), cpu.get()}) {
    const int which = e == cpu.get() ? 1 : 0;
    e->load(data);
    e->set_state(cases::weights_for(net_));
    single[which] = e->per_example(some, true);
    e->run(s.recipe, 5, std::vector<StepScalars>(2, scalars));
    after[which] = e->state();
  }
  const std::size_t d = net_.parameter_count;
  for (std::size_t e = 0; e < 2; ++e) {
    const auto [error, size] =
        cases::distance(single[0].gradients.data() + e * d, single[1].gradients.data() + e * d, d);
    EXPECT_TRUE(error <= 1e-5 * size + 1e-12) << "example " << some[e] << ": " << error / size;
  }
  for (const std::uint64_t step : {5u, 6u, 1'000'000u})
    EXPECT_EQ(device->sampled(step), cpu->sampled(step));
  const auto [error, size] =
      cases::distance(after[0].parameters.data(), after[1].parameters.data(), d);
  EXPECT_TRUE(error <= 1e-5 * size) << error / size;
}

/// A run goes on with another clipping norm in its middle, and a norm that came before comes back.
TEST_P(CudaEngine, TheClippingNormMayChangeFromStepToStep) {
  const Dataset data = cases::examples_for(model(), 6);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  const std::vector<StepScalars> steps{cases::still(0.1f, 0.5f), cases::still(0.1f, 0.5f),
                                       cases::still(0.1f, 2.0f), cases::still(0.1f, 0.5f)};
  const auto together = engine(s);
  const auto apart = engine(s);
  for (Engine* e : {together.get(), apart.get()}) {
    e->load(data);
    e->set_state(cases::weights_for(net_));
  }
  together->run(s.recipe, 3, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) apart->run(s.recipe, 3 + i, {&steps[i], 1});
  EXPECT_EQ(together->state().parameters, apart->state().parameters);
  EXPECT_NE(together->state().parameters, cases::weights_for(net_).parameters);
}

/// The device counts and moves the norm as the host does, step by step, to the bit.
TEST_P(CudaEngine, MovesTheClippingNormAsTheHost) {
  if (net_.parameter_count > 30'000) GTEST_SKIP() << "the small networks show it";
  const Dataset data = cases::examples_for(model(), 6);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{3} << 30};
  s.diagnostics = true;
  const ClipRule rule{.target = 0.25,
                      .rate = 0.5,
                      .min_clip = 0.01,
                      .max_clip = 100.0,
                      .expected_batch = 5.0,
                      .grid = 0x1p-21,
                      .noise_multiplier = 0.5,
                      .sensitivity = 1.01,
                      .normalised = true};
  const std::vector<StepScalars> given(4, cases::still(0.1f));
  const std::vector<std::int64_t> noise{1'000'000, -700'001, 33, 3'000'000};
  const auto device = engine(s);
  const auto host = engine(s);
  FollowedSteps got, want;
  for (Engine* e : {device.get(), host.get()}) {
    e->load(data);
    e->set_state(cases::weights_for(net_));
    if (e == device.get())
      got = e->run_following(s.recipe, 5, given, rule, 0.5f, noise);
    else
      want = e->Engine::run_following(s.recipe, 5, given, rule, 0.5f, noise);
  }
  EXPECT_EQ(got.noisy_counts, want.noisy_counts);
  EXPECT_EQ(check_followed(got, rule, 0.5f, given), check_followed(want, rule, 0.5f, given));
  EXPECT_NE(got.scalars[3].clip_norm, 0.5f);
  EXPECT_EQ(device->state().parameters, host->state().parameters);
}

TEST_P(CudaEngine, RefusesRecipesAndNumbersThatDoNotFit) {
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  const auto device = engine(s);
  const Dataset data = cases::examples_for(model(), 6);
  device->load(data);
  device->set_state(cases::weights_for(net_));
  const StepScalars one = cases::still();
  StepRecipe other = s.recipe;
  other.optimizer.kind = OptimizerKind::momentum;
  EXPECT_THROW(device->run(other, 0, {&one, 1}), Error);
  other = s.recipe;
  other.contribution = AcceptedDirection{};
  EXPECT_THROW(device->run(other, 0, {&one, 1}), Error);
  for (const float clip_norm : {0.0f, -1.0f, INFINITY, NAN}) {
    const StepScalars wrong = cases::still(0.0f, clip_norm);
    EXPECT_THROW(device->run(s.recipe, 0, {&wrong, 1}), std::invalid_argument) << clip_norm;
  }
  StepScalars loud = one;
  loud.noise_std = 1e-3f;  // of a clipping norm of 1: less than 2^16 units
  EXPECT_THROW(device->run(s.recipe, 0, {&loud, 1}), std::invalid_argument);
}

TEST_P(CudaEngine, RefusesWhatDoesNotFit) {
  Dataset other = cases::examples_for(model(), 3);
  other.shape.channels += 1;
  const auto device = engine({});
  EXPECT_THROW(device->load(other), InputError);
  EXPECT_THROW(device->set_state({}), Error);
  EXPECT_THROW(device->run({}, 0, {}), Error);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Case, DeviceBackend>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

}  // namespace
}  // namespace cudp
