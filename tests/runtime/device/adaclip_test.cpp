#include "runtime/methods/adaclip.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Case;
using cases::kCases;

/// By a fused kernel where the network has one.
std::unique_ptr<Engine> cuda_engine(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  s.micro_batch = 32;
  return device_engine(net, s, {.shared_bytes = std::size_t{227} * 1024});
}
std::unique_ptr<Engine> cuda_by_layers(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  s.micro_batch = 32;
  return layer_wise_engine(net, s);
}
/// Dense layers by BLAS.
std::unique_ptr<Engine> cuda_by_blas(const Network& net, const EngineSettings& settings) {
  return layer_wise_engine(net, settings, 1);
}
using Make = std::unique_ptr<Engine> (*)(const Network&, const EngineSettings&);

PrivacyPlan plan() {
  PrivacyPlan p;
  p.sampling_threshold = std::uint64_t{1} << 31;
  p.steps = 100;
  p.expected_batch = 20.0;
  p.noise_multiplier = 0.4;
  p.clip_norm = 1.0;
  p.sensitivity = 1.0;
  return p;
}

TrainConfig config(double lr) {
  TrainConfig c;
  c.lr = lr;
  c.optimizer = OptimizerKind::sgd;
  c.of<AdaClipOptions>() = {
      .beta1 = 0.9, .beta2 = 0.8, .min_variance = 1e-8, .max_variance = 0.5, .literal = false};
  return c;
}

/// Mean and deviation stay as they are.
TrainConfig still_config(double lr) {
  TrainConfig c = config(lr);
  c.of<AdaClipOptions>().beta1 = c.of<AdaClipOptions>().beta2 = 1.0;
  return c;
}

EngineSettings settings_for(const EngineMethod& method) {
  EngineSettings s;
  s.recipe = method.recipe();
  s.key = {{2, 7, 1, 8, 2, 8}};
  return s;
}

/// Weights, and means and deviations of different sizes.
TrainState start_for(const Network& net) {
  TrainState s = cases::weights_for(net);
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  for (std::size_t j = 0; j < net.parameter_count; ++j) {
    s.deviation.push_back(0.02f * std::exp(normal(random)));
    s.mean.push_back(0.3f * s.deviation.back() * normal(random));
  }
  return s;
}

TrainState trained(Make make, const Case& c, const TrainState& start, const EngineMethod& method,
                   std::uint64_t steps = 4) {
  const Network net = cases::network_of(c);
  const auto engine = make(net, settings_for(method));
  const Dataset data = cases::examples_for(c, 30);
  engine->load(data);
  engine->set_state(start);
  method.run(*engine, 5, 6);
  method.run(*engine, 6, 5 + steps);
  return engine->state();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size());
  const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
  EXPECT_TRUE(error <= tolerance * size) << what << ": " << error << " of " << size;
}

class AdaClipCase : public testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(AdaClipCase, TrainsLikeTheOracle) {
  const auto& [c, literal] = GetParam();
  const Network net = cases::network_of(c);
  TrainConfig with = config(0.05);
  with.of<AdaClipOptions>().literal = literal;
  const AdaClip method(cases::context_of(with, net, 10), plan());
  const TrainState start = start_for(net);
  const TrainState want = trained(reference::make_engine, c, start, method);
  for (const auto& [make, name] : {std::pair<Make, const char*>{make_cpu_engine, "cpu"},
                                   {cuda_engine, "cuda"},
                                   {cuda_by_layers, "layers"},
                                   {cuda_by_blas, "blas"}}) {
    if (make == cuda_by_blas && net.parameter_count > 5000) continue;
    SCOPED_TRACE(name);
    const TrainState got = trained(make, c, start, method);
    expect_near(got.parameters, want.parameters, 2e-5, "parameters");
    expect_near(got.mean, want.mean, 1e-3, "mean");
    expect_near(got.deviation, want.deviation, 1e-3, "deviation");
  }
}

/// One step without noise, in which everything that a sum depends on shows.
TEST_P(AdaClipCase, SumsTransformedAndClippedGradients) {
  if (std::get<1>(GetParam())) return;
  const Case& c = std::get<0>(GetParam());
  const Network net = cases::network_of(c);
  PrivacyPlan p = plan();
  p.noise_multiplier = 0.0;
  p.expected_batch = 1.0;
  const AdaClip method(cases::context_of(still_config(1.0), net, 10), p);
  TrainState start = start_for(net);
  start.parameters = cases::weights_for(net).parameters;
  const auto moved = [&](Make make) {
    const TrainState end = trained(make, c, start, method, 1);
    std::vector<float> by(end.parameters.size());
    for (std::size_t j = 0; j < by.size(); ++j) by[j] = end.parameters[j] - start.parameters[j];
    return by;
  };
  const auto want = moved(reference::make_engine);
  expect_near(moved(make_cpu_engine), want, 1e-4, "cpu");
  expect_near(moved(cuda_engine), want, 1e-4, "cuda");
  expect_near(moved(cuda_by_layers), want, 1e-4, "layers");
}

/// m = 0 and constant s: the scale is s sqrt(d) everywhere, which is DP-SGD's C.
TEST_P(AdaClipCase, WithoutMeanAndWithConstantDeviationsItIsDpSgd) {
  const auto& [c, literal] = GetParam();
  if (literal) return;
  const Network net = cases::network_of(c);
  TrainState start = cases::weights_for(net);
  const double norm = 0.7;
  TrainState transformed = start;
  transformed.mean.assign(net.parameter_count, 0.0f);
  transformed.deviation.assign(
      net.parameter_count,
      static_cast<float>(norm / std::sqrt(static_cast<double>(net.parameter_count))));
  PrivacyPlan p = plan();
  p.clip_norm = norm;
  p.sensitivity = norm;
  const TrainConfig with = still_config(0.05);
  const DpSgd dp_sgd(cases::context_of(with, net, 10), p);
  const AdaClip adaclip(cases::context_of(with, net, 10), plan());
  for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}, Make{cuda_by_layers}}) {
    const TrainState want = trained(make, c, start, dp_sgd);
    const TrainState got = trained(make, c, transformed, adaclip);
    std::vector<float> moved_want(want.parameters.size());
    std::vector<float> moved_got(want.parameters.size());
    for (std::size_t j = 0; j < moved_got.size(); ++j) {
      moved_got[j] = got.parameters[j] - start.parameters[j];
      moved_want[j] = want.parameters[j] - start.parameters[j];
    }
    expect_near(moved_got, moved_want, 1e-4, "step");
  }
}

std::vector<Case> small_cases() {
  std::vector<Case> v;
  for (const Case& c : kCases)
    if (cases::network_of(c).parameter_count < 30'000) v.push_back(c);
  return v;
}
INSTANTIATE_TEST_SUITE_P(All, AdaClipCase,
                         testing::Combine(testing::ValuesIn(small_cases()), testing::Bool()),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param).name) +
                                  (std::get<1>(i.param) ? "_literal" : "");
                         });

TEST(AdaClip, MeansAndDeviationsFollowAndKeepTheirBounds) {
  const Case& c = kCases[1];
  const Network net = cases::network_of(c);
  TrainConfig with = config(0.05);
  with.optimizer = OptimizerKind::momentum;
  TrainState start = start_for(net);
  start.moment1.assign(net.parameter_count, 0.0f);
  const TrainState end =
      trained(make_cpu_engine, c, start, AdaClip(cases::context_of(with, net, 10), plan()), 30);
  double moved = 0.0;
  for (std::size_t j = 0; j < net.parameter_count; ++j) {
    moved += std::fabs(end.mean[j] - start.mean[j]);
    EXPECT_GE(end.deviation[j], 1e-4f * (1.0f - 1e-6f));
    EXPECT_LE(end.deviation[j], std::sqrt(0.5f));
  }
  EXPECT_GT(moved, 0.0);
}

TEST(AdaClip, NonFiniteExamplesAndEmptyBatchesContributeNothing) {
  const Case& c = kCases[1];
  const Network net = cases::network_of(c);
  Dataset data = cases::examples_for(c, 12);
  Dataset kept = data;
  kept.floats.erase(kept.floats.begin() + 7L * 37, kept.floats.begin() + 8L * 37);
  kept.labels.erase(kept.labels.begin() + 7);
  PrivacyPlan p = plan();
  p.sampling_threshold = std::uint64_t{1} << 32;
  p.noise_multiplier = 0.0;
  const AdaClip method(cases::context_of(config(TrainConfig{}.lr), net, 10), p);
  const TrainState start = start_for(net);
  for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}, Make{cuda_by_layers}})
    for (const float bad : {NAN, INFINITY, 3e38f}) {
      data.floats[7 * 37 + 20] = bad;
      const auto end = [&](const Dataset& d) {
        const auto engine = make(net, settings_for(method));
        engine->load(d);
        engine->set_state(start);
        method.run(*engine, 0, 1);
        return engine->state().parameters;
      };
      EXPECT_EQ(end(data), end(kept)) << bad;
    }
}

/// Means far beyond |m / scale| = 4 are shortened, or rounding would not be bounded.
TEST(AdaClip, ShortensMeansThatAreTooLarge) {
  const Case& c = kCases[6];
  const Network net = cases::network_of(c);
  TrainState start = start_for(net);
  for (float& m : start.mean) m *= 100.0f;
  const AdaClip method(cases::context_of(config(1e-3), net, 10), plan());
  const TrainState want = trained(reference::make_engine, c, start, method);
  for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}, Make{cuda_by_layers}}) {
    const TrainState got = trained(make, c, start, method);
    expect_near(got.parameters, want.parameters, 2e-5, "parameters");
    expect_near(got.mean, want.mean, 1e-3, "mean");
  }
}

TEST(AdaClip, TheDenseNormIsNeverBelowTheTruth) {
  // m close to the gradient itself: A, B and c cancel to nearly nothing.
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const double away : {0.0, 1e-6, 1e-3, 1.0}) {
    constexpr int kInputs = 500;
    constexpr int kOutputs = 7;
    std::vector<float> x(kInputs);
    std::vector<float> dy(kOutputs);
    for (float& v : x) v = normal(random);
    for (float& v : dy) v = normal(random);
    double truth = 0.0;
    double a = 0.0;
    double b = 0.0;
    double shift = 0.0;
    for (int j = 0; j < kOutputs; ++j) {
      float u = 0.0f;
      float v = 0.0f;
      for (int i = 0; i < kInputs; ++i) {
        const float inverse = 0.1f + std::fabs(normal(random));
        const auto m = static_cast<float>(x[i] * dy[j] + away * normal(random));
        truth += std::pow((double{x[i]} * dy[j] - m) * inverse, 2);
        u += x[i] * x[i] * (inverse * inverse);
        v += x[i] * (m * (inverse * inverse));
        shift += double{m} * m * (inverse * inverse);
      }
      a += double{dy[j]} * dy[j] * u;
      b += double{dy[j]} * v;
    }
    const float square = dense_square(a, b, shift, dense_square_error(kInputs, kOutputs));
    EXPECT_GE(square, truth) << away;
    EXPECT_LE(square, truth + 5.0 * dense_square_error(kInputs, kOutputs) * shift + 1e-3 * truth);
  }
}

TEST(AdaClip, RoundingIsPaidForInTheSensitivity) {
  const Network net = cases::network_of(kCases[4]);
  const double u = 0x1p-24;
  EXPECT_NEAR(sensitivity_rounding_error(net, kCpuArithmetic, 4.0),
              (1.0 + 0x1p-13) * (1.0 + 40.0 * u) - 1.0 +
                  0.5 * std::sqrt(static_cast<double>(net.parameter_count)) * 0x1p-20,
              1e-15);
}

/// The sum's sensitivity, on the device's own arithmetic: taking one example away moves the
/// transformed sum by at most 1 and the rounding error, also where m is as large as it may be.
TEST(AdaClip, OneExampleMovesTheSumByAtMostOne) {
  const Case& c = kCases[1];
  const Network net = cases::network_of(c);
  TrainState start = start_for(net);
  for (float& v : start.deviation) v *= 0.01f;  // everything is clipped
  Dataset all = cases::examples_for(c, 200);
  Dataset less = all;
  less.floats.erase(less.floats.begin(), less.floats.begin() + 37);
  less.labels.erase(less.labels.begin());
  // scale = sqrt(s_j S); a step of lr 1 without noise moves theta by scale W + m
  double deviations = 0.0;
  for (const float v : start.deviation) deviations += v;
  PrivacyPlan p = plan();
  p.sampling_threshold = std::uint64_t{1} << 32;
  p.noise_multiplier = 0.0;
  p.expected_batch = 1.0;
  const AdaClip method(cases::context_of(still_config(1.0), net, 10), p);
  start.parameters.assign(start.parameters.size(), 0.0f);
  for (const float size : {0.0f, 1.0f, 1000.0f})
    for (const Make make : {Make{make_cpu_engine}, Make{cuda_engine}, Make{cuda_by_layers}}) {
      TrainState from = start;
      for (float& m : from.mean) m *= size;
      const auto moved = [&](const Dataset& d) {
        const auto engine = make(net, settings_for(method));
        engine->load(d);
        engine->set_state(from);
        method.run(*engine, 0, 1);
        return engine->state().parameters;
      };
      const auto a = moved(all);
      const auto b = moved(less);
      double square = 0.0;
      for (std::size_t j = 0; j < a.size(); ++j)
        square += std::pow(double{a[j]} - b[j], 2) / (start.deviation[j] * deviations);
      EXPECT_LE(std::sqrt(square), 1.0 + sensitivity_rounding_error(net, kCudaArithmetic, 4.0));
      EXPECT_GT(std::sqrt(square), 0.99);
    }
}

}  // namespace
}  // namespace cudp
