// For one key the CPU's engine and the CUDA engine draw the same batches and the same noise.
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/engine_cases.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

/// 700 parameters: two tiles of 256 random words and a tail.
const cases::Case kSoftmax{"softmax", "logistic", {69, 1, 1}, 10};

EngineSettings settings_of(Generator generator, std::uint64_t threshold) {
  EngineSettings s;
  s.generator = generator;
  s.key = {{11, 22, 33, 44, 55, 66, 77, 88}};
  s.recipe.draw = Poisson{threshold};
  s.recipe.optimizer.kind = OptimizerKind::momentum;
  s.recipe.optimizer.momentum = 0;
  s.micro_batch = 32;
  s.threads = 2;
  s.diagnostics = true;
  return s;
}

class EngineRandom : public testing::TestWithParam<Generator> {};

TEST_P(EngineRandom, TheSameBatches) {
  const Network net = cases::network_of(kSoftmax);
  for (const double rate : {1e-3, 0.03, 0.4, 0.9})
    for (const std::size_t examples : {1u, 31u, 33u, 4097u}) {
      SCOPED_TRACE(std::to_string(examples) + " at rate " + std::to_string(rate));
      const Dataset data = cases::examples_for(kSoftmax, examples);
      const EngineSettings s =
          settings_of(GetParam(), static_cast<std::uint64_t>(std::ceil(rate * 0x1p32)));
      const auto cpu = make_cpu_engine(net, s);
      const auto device = device_engine(net, s);
      cpu->load(data);
      device->load(data);
      std::size_t drawn = 0;
      constexpr std::uint64_t kSteps[] = {0, 1, 2, 3, 4095, 4096, 1'000'000};
      for (const std::uint64_t step : kSteps) {
        const std::vector<std::uint32_t> batch = cpu->sampled(step);
        EXPECT_EQ(device->sampled(step), batch) << "step " << step;
        drawn += batch.size();
      }
      // Too many or too few: once in 1e9 (Bernstein).
      const double expected = rate * static_cast<double>(examples * std::size(kSteps));
      EXPECT_LE(std::abs(static_cast<double>(drawn) - expected), 7 * std::sqrt(expected) + 15);
    }
}

TEST_P(EngineRandom, TheSameNoiseInEveryStepOfARun) {
  const Network net = cases::network_of(kSoftmax);
  const Dataset data = cases::examples_for(kSoftmax, 33);
  const EngineSettings s = settings_of(GetParam(), 0);  // nobody is drawn: a sum is noise alone
  const auto cpu = make_cpu_engine(net, s);
  const auto device = device_engine(net, s);
  TrainState state = cases::weights_for(net);
  state.moment1.assign(net.parameter_count, 0.0f);
  const StepScalars loud{.learning_rate = 0,
                         .noise_std = 1,
                         .inverse_batch = 1,
                         .bias1 = 1,
                         .bias2 = 1,
                         .ema_decay = 0,
                         .clip_norm = 1};
  std::vector<float> before(net.parameter_count);
  for (Engine* e : {cpu.get(), device.get()}) {
    e->load(data);
    e->set_state(state);
  }
  for (std::uint64_t last = 8; last < 12; ++last) {
    std::vector<float> noise[2];  // the moment after steps 7 .. last: the last one's noise
    for (Engine* e : {cpu.get(), device.get()}) {
      e->run(s.recipe, 7, std::vector<StepScalars>(last - 6, loud));
      noise[e == cpu.get() ? 0 : 1] = e->state().moment1;
    }
    std::size_t same_as_before = 0;
    for (std::size_t j = 0; j < net.parameter_count; ++j) {
      ASSERT_TRUE(std::abs(noise[0][j] - noise[1][j]) <= 1e-6f * std::abs(noise[0][j]))
          << "step " << last << ", " << j << ": " << noise[0][j] << ", " << noise[1][j];
      same_as_before += noise[0][j] == before[j];
    }
    EXPECT_LE(same_as_before, 3u) << "each step has noise of its own";
    before = noise[0];
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineRandom, testing::Values(Generator::chacha20, Generator::philox),
                         [](const auto& i) {
                           return i.param == Generator::chacha20 ? "chacha20" : "philox";
                         });

}  // namespace
}  // namespace cudp
