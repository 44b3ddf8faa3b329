// Nothing that an example computes depends on what lay in memory before it: every engine gives the
// same bits whatever its scratch memory is filled with before each example or micro-batch.
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/scatter.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/same_bits.hpp"
#include "tests/support/scatter_images.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Bits;
using cases::Case;
using cases::expect_same_bits;

using MakeEngine = std::function<std::unique_ptr<Engine>(const EngineSettings&)>;

Bits all_of(const Network& net, const Dataset& data, const MakeEngine& make) {
  Bits bits;
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0u);
  bool has_table = false;
  for (const NetworkLayer& l : net.layers)
    if (const auto* e = std::get_if<Embedding>(&l.layer)) has_table = has_table || e->trainable;
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{3} << 30};
  s.threads = 1;
  s.micro_batch = 5;
  s.diagnostics = true;
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    s.recipe.contribution = ClippedGradient{kind};
    const auto engine = make(s);
    bits.add(cases::clipped_sum(*engine, s.recipe, net, data, 0.6f));
    bits.add(cases::clipped_sum(*engine, s.recipe, net, data, 0.6f));
    bits.add(engine->diagnostics().norm());
    if (kind != Clipping::flat) continue;
    bits.add(engine->logits(data));
    const PerExample single = engine->per_example(all, true);
    bits.add(single.gradients);
    bits.add(single.squared_norms);
    bits.add(single.losses);
  }
  const StepScalars one{.learning_rate = 1,
                        .noise_std = 0,
                        .inverse_batch = 0.01f,
                        .bias1 = 1,
                        .bias2 = 1,
                        .ema_decay = 0,
                        .clip_norm = 1};
  {
    EngineSettings importance = s;
    importance.recipe.draw =
        Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.01, .rate = 0.4}};
    importance.recipe.contribution = AcceptedDirection{};
    const auto engine = make(importance);
    engine->load(data);
    engine->set_state(cases::weights_for(net));
    engine->measure_norms();
    bits.add(engine->norms());
    engine->run(importance.recipe, 5, std::vector(2, one));
    bits.add(engine->norms());
    bits.add(engine->state().parameters);
  }
  if (has_table) return bits;  // its gradients are not transformed
  s.recipe.contribution = TransformedGradient{};
  const auto engine = make(s);
  engine->load(data);
  TrainState state = cases::weights_for(net);
  state.mean.assign(net.parameter_count, 0.01f);
  state.deviation.assign(net.parameter_count, 0.1f);
  engine->set_state(state);
  engine->run(s.recipe, 5, std::vector(2, one));
  bits.add(engine->state().parameters);
  bits.add(engine->state().deviation);
  return bits;
}

class Scratch : public testing::TestWithParam<std::tuple<Case, SimdLevel>> {};

TEST_P(Scratch, LeavesNoTraceOnTheCpu) {
  const auto& [c, level] = GetParam();
  if (!cases::has_simd_level(level)) GTEST_SKIP() << "this processor has no " << simd_name(level);
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 37);
  const SimdLevel at = level;
  expect_same_bits([&] {
    return all_of(net, data,
                  [&](const EngineSettings& s) { return cases::cpu_engine_at(at, net, s); });
  });
}
const auto kLevels = testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512);
const auto kName = [](const auto& i) {
  return std::string(std::get<0>(i.param).name) + "_" +
         std::string(simd_name(std::get<1>(i.param)));
};
INSTANTIATE_TEST_SUITE_P(All, Scratch, testing::Combine(testing::ValuesIn(cases::kCases), kLevels),
                         kName);
INSTANTIATE_TEST_SUITE_P(Texts, Scratch,
                         testing::Combine(testing::ValuesIn(cases::kTextCases), kLevels), kName);

class ScratchOfCudaTexts : public testing::TestWithParam<Case> {};

TEST_P(ScratchOfCudaTexts, LeavesNoTrace) {
  const Network net = cases::network_of(GetParam());
  const Dataset data = cases::examples_for(GetParam(), 7);
  expect_same_bits([&] {
    return all_of(net, data, [&](const EngineSettings& s) { return device_engine(net, s); });
  });
}
INSTANTIATE_TEST_SUITE_P(All, ScratchOfCudaTexts, testing::ValuesIn(cases::kTextCases),
                         [](const auto& i) { return std::string(i.param.name); });

/// In TF32 a network of texts that fits is one kernel, with scratch memory of its own.
TEST(ScratchOfFusedTexts, LeavesNoTrace) {
  const Case& c = cases::kTextCases[0];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 7);
  expect_same_bits([&] {
    return all_of(net, data, [&](EngineSettings s) {
      s.precision = Precision::tf32;
      return device_engine(net, s, {.shared_bytes = std::size_t{227} * 1024});
    });
  });
}

class ScratchOfRandomModels : public testing::TestWithParam<unsigned> {};

TEST_P(ScratchOfRandomModels, LeavesNoTrace) {
  const cases::RandomModel m = cases::random_model(GetParam());
  SCOPED_TRACE(m.text);
  const Case c{"random", m.text.c_str(), m.input, m.classes};
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 7);
  expect_same_bits([&] {
    return all_of(net, data, [&](const EngineSettings& s) { return make_cpu_engine(net, s); });
  });
  expect_same_bits([&] {
    return all_of(net, data, [&](const EngineSettings& s) {
      return layer_wise_engine(net, s, GetParam() % 2 == 0 ? 1 : cuda::kLargeDense);
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Seeds, ScratchOfRandomModels, testing::Range(62u, 70u),
                         [](const auto& i) { return "seed_" + std::to_string(i.param); });

TEST(ScratchOfFusedKernels, LeavesNoTrace) {
  for (const Case& c : {cases::kCases[0], cases::kCases[3]}) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = cases::examples_for(c, 7);
    expect_same_bits([&] {
      Bits bits;
      EngineSettings s;
      s.recipe.draw = Poisson{std::uint64_t{3} << 30};
      s.diagnostics = true;
      const auto engine = fused_engine(net, s, {});
      bits.add(cases::clipped_sum(*engine, s.recipe, net, data));
      bits.add(cases::clipped_sum(*engine, s.recipe, net, data));
      bits.add(engine->diagnostics().norm());
      return bits;
    });
  }
}

TEST(ScratchOfScattering, LeavesNoTrace) {
  const Dataset images = cases::examples_for(cases::kCases[4], 21);
  expect_same_bits([&] {
    Bits bits;
    bits.add(scatter_on_cpu(images, 1, [](double) {}));
    return bits;
  });
}

}  // namespace
}  // namespace cudp
