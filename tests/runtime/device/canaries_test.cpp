// What an audit does to an engine: its canaries add what clipping leaves of them and nothing else.
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/audit_tap.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

constexpr float kClip = 0.7f;
constexpr StepScalars kNoNoise{.learning_rate = 0.1f,
                               .noise_std = 0.0f,
                               .inverse_batch = 1.0f,
                               .bias1 = 1.0f,
                               .bias2 = 1.0f,
                               .ema_decay = 0.0f,
                               .clip_norm = kClip};

const cases::Case& model() { return cases::kCases[6]; }  // convolutions, group norm, dense layers

EngineSettings settings(Clipping kind) {
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  s.recipe.contribution = ClippedGradient{kind};
  s.diagnostics = true;
  s.threads = 2;
  return s;
}

using CanaryEngine = std::unique_ptr<Engine> (*)(const Network&, const EngineSettings&);
constexpr CanaryEngine kCanaryEngines[] = {make_cpu_engine,
                                           [](const Network& n, const EngineSettings& s) {
                                             EngineSettings few = s;
                                             few.micro_batch = 64;
                                             return device_engine(n, few);
                                           }};

/// The sum of 40 examples, the last of which are canaries, and what was measured of them.
struct Summed {
  std::vector<float> sum, ordinary;
  double most = 0.0;
  Diagnostics diagnostics;

  Summed(CanaryEngine on, EngineSettings s, std::vector<std::uint32_t> canaries,
         std::size_t examples) {
    const Network network = cases::network_of(model());
    const auto tap = std::make_shared<AuditTap>();
    tap->canaries = std::move(canaries);
    tap->released = [this](const ReleasedSum& released) {
      EXPECT_EQ(released.step, 5u);
      EXPECT_EQ(released.noise_std, 0.0);
      most = released.max_norm;
      sum.assign(released.sum.begin(), released.sum.end());
      ordinary.assign(released.ordinary.begin(), released.ordinary.end());
    };
    s.audit = tap;
    const auto engine = on(network, s);
    // The same ones first, however many there are.
    Dataset data = cases::examples_for(model(), 400);
    data.labels.resize(examples);
    data.bytes.resize(examples * static_cast<std::size_t>(data.shape.size()));
    engine->load(data);
    TrainState state = cases::weights_for(network);
    if (std::holds_alternative<TransformedGradient>(s.recipe.contribution)) {
      state.mean.assign(state.parameters.size(), 0.01f);
      state.deviation.assign(state.parameters.size(), 0.3f);
    }
    engine->set_state(state);
    if (std::holds_alternative<Candidates>(s.recipe.draw)) engine->measure_norms();
    engine->run(s.recipe, 5, {&kNoNoise, 1});
    diagnostics = engine->diagnostics();
  }
};

class Canary : public testing::TestWithParam<std::tuple<Clipping, CanaryEngine>> {};

TEST_P(Canary, AddsWhatClippingLeavesOfIt) {
  const auto [clipping, on] = GetParam();
  const Network network = cases::network_of(model());
  const auto last = static_cast<std::uint32_t>(network.parameter_count - 1);
  const std::vector<std::uint32_t> canaries{0, 7, last, 7};
  const auto sum = [&, clipping = clipping, on = on](const std::vector<std::uint32_t>& c,
                                                     std::size_t examples) {
    return Summed(on, settings(clipping), c, examples);
  };
  const Summed without = sum({}, 36);
  const Summed with = sum(canaries, 40);
  const double norm = clipping == Clipping::per_layer
                          ? kClip / std::sqrt(static_cast<double>(network.groups))
                          : kClip;
  std::vector<double> expected(without.sum.begin(), without.sum.end());
  for (const std::uint32_t j : canaries) expected[j] += norm;
  ASSERT_EQ(with.sum.size(), expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j)
    EXPECT_NEAR(with.sum[j], expected[j], 4.0 * sum_grid(kClip) + 1e-6 * std::fabs(expected[j]));
  EXPECT_EQ(with.ordinary, without.sum);
  EXPECT_NEAR(with.most, norm, 1e-6);
  EXPECT_EQ(with.diagnostics.examples, 40u);
  EXPECT_EQ(with.diagnostics.clipped, without.diagnostics.clipped + 4);
}

INSTANTIATE_TEST_SUITE_P(Clippings, Canary,
                         testing::Combine(testing::Values(Clipping::flat, Clipping::per_layer,
                                                          Clipping::automatic),
                                          testing::ValuesIn(kCanaryEngines)));

TEST(CanaryOf, CoordinatesHasTheClippingNorm) {
  EngineSettings s = settings(Clipping::flat);
  s.recipe.contribution = TransformedGradient{};
  for (const CanaryEngine on : kCanaryEngines) {
    const auto sum = [&](const std::vector<std::uint32_t>& c, std::size_t examples) {
      return Summed(on, s, c, examples);
    };
    const Summed without = sum({}, 36);
    const Summed with = sum({9}, 37);
    for (std::size_t j = 0; j < with.sum.size(); ++j)
      EXPECT_NEAR(with.sum[j], without.sum[j] + (j == 9 ? kClip : 0.0f), 1e-5f);
  }
}

/// With its norm known, such an example is drawn with probability rate clip.
TEST(CanaryOf, ImportanceSamplingHasNormOneOrNone) {
  EngineSettings s = settings(Clipping::flat);
  s.recipe.draw =
      Candidates{{.clip = kClip, .multiple = 1.0, .min_norm = 0.01, .rate = 0.9 / kClip}};
  s.recipe.contribution = AcceptedDirection{};
  const std::vector<std::uint32_t> canaries(400, 3u);
  for (const CanaryEngine on : kCanaryEngines) {
    const Summed with(on, s, canaries, 400);
    const float n = with.sum[3];
    EXPECT_NEAR(n, std::nearbyint(n), 1e-4f);
    EXPECT_NEAR(n, 0.9f * 400.0f, 30.0f);  // 5 standard deviations
    for (std::size_t j = 0; j < with.sum.size(); ++j)
      if (j != 3) {
        EXPECT_EQ(with.sum[j], 0.0f);
      }
  }
}

TEST(CanaryOf, AParameterThatDoesNotExistIsRefused) {
  const Network network = cases::network_of(model());
  EngineSettings s = settings(Clipping::flat);
  const auto tap = std::make_shared<AuditTap>();
  tap->canaries = {static_cast<std::uint32_t>(network.parameter_count)};
  s.audit = tap;
  for (const CanaryEngine on : kCanaryEngines) EXPECT_THROW(on(network, s), Error);
  tap->canaries = {0, 1};
  const Dataset one = cases::examples_for(model(), 1);
  for (const CanaryEngine on : kCanaryEngines) EXPECT_THROW(on(network, s)->load(one), Error);
}

}  // namespace
}  // namespace cudp
