#include "runtime/methods/dpsgd_quantile.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/device/backend.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

TrainConfig quantile_config() {
  TrainConfig c;
  c.method = "dpsgd-quantile";
  c.sigma = 1.0;
  c.delta = 1e-5;
  c.batch = 32;
  c.epochs.reset();
  c.steps = 60;
  c.clip_norm = 0.5;
  c.lr = 1e-3;
  c.threads = 1;
  return c;
}

const cases::Case& model() { return cases::kCases[0]; }
Network network() { return cases::network_of(model()); }
constexpr std::size_t kExamples = 256;

using Training = cases::MethodTraining<DpSgdQuantile>;

Training training(const TrainConfig& c, const Backend& on = choose_backend(Device::cpu)) {
  return {std::make_unique<DpSgdQuantile>(
              cases::context_of(c, network(), TrainingSize{double{kExamples}, 0.0})),
          cases::examples_for(model(), kExamples), on};
}

/// Both releases of a step together are one Gaussian mechanism of the plan's noise multiplier.
TEST(DpSgdQuantile, SharesTheNoiseOfAStepOut) {
  for (const double share : {1e-4, 0.01, 0.5, 0.99}) {
    TrainConfig c = quantile_config();
    c.of<QuantileOptions>().noise_share = share;
    const Training t = training(c);
    const double gradients = 1.0 / t.method->gradient_noise_multiplier();
    const double count = 0.5 / t.method->count_noise();
    EXPECT_NEAR(gradients * gradients + count * count, 1.0, 1e-12);
    EXPECT_NEAR(count * count, share, 1e-12);
  }
}

TEST(DpSgdQuantile, TheClippingNormFindsTheQuantile) {
  for (const double target : {0.25, 0.5, 0.8}) {
    TrainConfig c = quantile_config();
    c.sigma = 0.0625;
    c.allow_weak_privacy = true;
    c.steps = 150;
    c.clip_norm = 20.0;
    c.of<QuantileOptions>().target = target;
    Training t = training(c);
    t.run(0, 150);
    const auto engine = make_cpu_engine(network(), {});
    engine->load(t.data);
    TrainState state;
    state.parameters = t.method->parameters();
    engine->set_state(state);
    std::vector<std::uint32_t> all(kExamples);
    for (std::uint32_t i = 0; i < kExamples; ++i) all[i] = i;
    const PerExample e = engine->per_example(all, false);
    const double c_square = t.method->clip_norm() * t.method->clip_norm();
    std::size_t below = 0;
    for (std::size_t i = 0; i < kExamples; ++i) {
      double square = 0.0;
      for (int g = 0; g < network().groups; ++g)
        square +=
            static_cast<double>(e.squared_norms[i * static_cast<std::size_t>(network().groups) +
                                                static_cast<std::size_t>(g)]);
      below += square <= c_square ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(below) / kExamples, target, 0.15);
  }
}

/// Where nothing is clipped the count is half of the batch: what is left is noise. Chi-square of
/// 1500 at 1e-6.
TEST(DpSgdQuantile, TheCountHasTheNoiseThatIsPaidFor) {
  TrainConfig c = quantile_config();
  constexpr std::uint64_t kSteps = 1500;
  c.steps = kSteps;
  c.clip_norm = 900.0;
  c.of<QuantileOptions>().lr = 1e-3;
  Training t = training(c);
  EngineSettings s;
  s.key = key_from_seed(1);
  s.recipe = t.method->recipe();
  const auto engine = make_cpu_engine(network(), s);
  engine->load(t.data);
  double square = 0.0;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const double before = t.method->clip_norm();
    t.run(step, step + 1);
    const double share = 0.5 - std::log(t.method->clip_norm() / before) / 1e-3;
    const double count = (share - 0.5) * t.method->plan().expected_batch;
    const double z =
        (count - 0.5 * static_cast<double>(engine->sampled(step).size())) / t.method->count_noise();
    square += z * z;
  }
  EXPECT_GT(square, 1500.0 - 4.9 * std::sqrt(3000.0));
  EXPECT_LT(square, 1500.0 + 5.3 * std::sqrt(3000.0));
}

/// Sums of b_i - 1/2 are multiples of 1/2; the grid is never coarser than that.
TEST(DpSgdQuantile, CountsAreReleasedOnTheirGrid) {
  for (const double sigma : {0.5, 40.0, 1e5}) {
    TrainConfig c = quantile_config();
    c.sigma = sigma;
    c.allow_weak_privacy = true;
    Training t = training(c);
    t.run(0, 3);
    const std::vector<Released>& released = t.gate.released();
    ASSERT_EQ(released.size(), 3u);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const GaussianRelease& r = released[step].release;
      EXPECT_EQ(r.step, step);
      EXPECT_EQ(r.purpose, Stream::clipped_count);
      EXPECT_EQ(r.noise_std, t.method->count_noise());
      EXPECT_EQ(r.sensitivity, 0.5);
      EXPECT_LE(r.grid, 0.5);
      EXPECT_GE(r.noise_std / r.grid, 0x1p20);
    }
  }
}

TEST(DpSgdQuantile, StaysWithinItsBounds) {
  TrainConfig c = quantile_config();
  c.of<QuantileOptions>() = {.lr = 5.0, .min_clip = 0.4, .max_clip = 0.6};
  Training t = training(c);
  for (std::uint64_t step = 0; step < 20; ++step) {
    t.run(step, step + 1);
    EXPECT_GE(t.method->clip_norm(), 0.4f);
    EXPECT_LE(t.method->clip_norm(), 0.6f);
  }
}

/// Both backends count the same examples, release the same noise, and go on with the same norm.
TEST(DpSgdQuantile, CudaFollowsTheSameNorm) {
  Backend emulated = choose_backend(Device::cpu);
  emulated.make_engine = [](const Network& net, const EngineSettings& settings) {
    return device_engine(net, settings);
  };
  TrainConfig c = quantile_config();
  c.steps = 8;
  Training on_cpu = training(c);
  Training on_device = training(c, emulated);
  for (std::uint64_t step = 0; step < 8; ++step) {
    on_cpu.run(step, step + 1);
    on_device.run(step, step + 1);
    EXPECT_FLOAT_EQ(on_device.method->clip_norm(), on_cpu.method->clip_norm()) << step;
  }
  EXPECT_NE(on_cpu.method->clip_norm(), 0.5f);
}

/// However a training is cut into runs, which the device may make without the host, the norm and
/// the noise are the same.
TEST(DpSgdQuantile, RunsOfManyStepsAreThoseOfOne) {
  DeviceLog log;
  for (const bool on_device : {false, true}) {
    Backend backend = choose_backend(Device::cpu);
    if (on_device)
      backend.make_engine = [&](const Network& net, const EngineSettings& settings) {
        return device_engine(net, settings, {.log = &log});
      };
    Training whole = training(quantile_config(), backend);
    log = {};
    whole.run(0, 12);
    if (on_device) {
      EXPECT_EQ(log.waits, 1);
      EXPECT_EQ(log.recordings, 2) << "a step, and the start of the first one";
    }
    Training parts = training(quantile_config(), backend);
    for (std::uint64_t step = 0; step < 12; ++step) parts.run(step, step + 1);
    EXPECT_EQ(whole.method->clip_norm(), parts.method->clip_norm());
    EXPECT_EQ(whole.method->parameters(), parts.method->parameters());
    EXPECT_EQ(whole.method->diagnostics().examples, parts.method->diagnostics().examples);
  }
}

/// Nothing comes of a run whose device has moved the norm by a bit, or taken other noise by it.
TEST(DpSgdQuantile, ADeviceThatMovesTheNormOtherwiseEndsTheRun) {
  struct Tampered : ForwardingEngine {
    Tampered(std::unique_ptr<Engine> real, float StepScalars::*of)
        : ForwardingEngine(std::move(real)), member(of) {}
    FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                                std::span<const StepScalars> scalars, const ClipRule& rule,
                                float clip, std::span<const std::int64_t> count_noise) override {
      FollowedSteps steps =
          ForwardingEngine::run_following(recipe, first, scalars, rule, clip, count_noise);
      float& changed = steps.scalars[2].*member;
      changed = std::nextafterf(changed, 0.0f);
      return steps;
    }
    float StepScalars::*member;
  };
  for (float StepScalars::*const member :
       {&StepScalars::clip_norm, &StepScalars::noise_std, &StepScalars::inverse_batch}) {
    Backend backend = choose_backend(Device::cpu);
    backend.make_engine = [member](const Network& net, const EngineSettings& settings) {
      return std::make_unique<Tampered>(make_cpu_engine(net, settings), member);
    };
    Training t = training(quantile_config(), backend);
    ASSERT_EQ(t.method->authorise(t.budget, 0, 6), 6u);
    EXPECT_THROW(t.method->train(0, 6), Error);
    EXPECT_EQ(t.method->clip_norm(), 0.5f) << "nothing was taken over";
  }
}

TEST(DpSgdQuantile, GoesOnFromItsState) {
  Training whole = training(quantile_config());
  whole.run(0, 20);
  Training first = training(quantile_config());
  first.run(0, 7);
  Training second = training(quantile_config());
  second.method->restore(second.inputs, first.method->state());
  ASSERT_EQ(second.method->authorise(second.budget, 0, 7), 7u);
  second.run(7, 20);
  EXPECT_EQ(second.method->clip_norm(), whole.method->clip_norm());
  EXPECT_EQ(second.method->parameters(), whole.method->parameters());
}

TEST(DpSgdQuantile, RefusesWhatItCannotFollow) {
  const auto complete = [](TrainConfig c) { method_entry("dpsgd-quantile").complete(c); };
  TrainConfig c = quantile_config();
  c.clipping = Clipping::per_layer;
  EXPECT_THROW(complete(c), InputError);
  c = quantile_config();
  c.clip_norm = 1e-4;
  EXPECT_THROW(complete(c), InputError);
}

}  // namespace
}  // namespace cudp
