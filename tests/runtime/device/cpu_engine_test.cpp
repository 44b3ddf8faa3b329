// The CPU engine, at every SIMD level, against the double-precision oracle.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/engine.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

using cases::Case;
using cases::clipped_sum;
using cases::cpu_engine_at;
using cases::examples_for;
using cases::kCases;
using cases::network_of;
using cases::weights_for;

class CpuEngine : public testing::TestWithParam<std::tuple<Case, SimdLevel>> {
 protected:
  void SetUp() override {
    const SimdLevel level = std::get<1>(GetParam());
    if (!cases::has_simd_level(level)) GTEST_SKIP() << "this processor has no " << simd_name(level);
  }
};

TEST_P(CpuEngine, PerExampleGradientsNormsAndLosses) {
  const auto& [c, level] = GetParam();
  const Network net = network_of(c);
  const Dataset data = examples_for(c, 5);
  const auto engine = cpu_engine_at(level, net, {});
  reference::ReferenceEngine oracle(net, {});
  for (Engine* e : {engine.get(), static_cast<Engine*>(&oracle)}) {
    e->load(data);
    e->set_state(weights_for(net));
  }
  const std::uint32_t some[] = {0, 3, 4};
  const PerExample got = engine->per_example(some, true);
  const PerExample want = oracle.per_example(some, true);
  const std::size_t d = net.parameter_count;
  for (std::size_t e = 0; e < std::size(some); ++e) {
    EXPECT_NEAR(got.losses[e], want.losses[e], 1e-5 * (1 + want.losses[e]));
    double error = 0;
    double size = 0;
    for (std::size_t j = 0; j < d; ++j) {
      error += std::pow(double(got.gradients[e * d + j]) - want.gradients[e * d + j], 2);
      size += std::pow(double(want.gradients[e * d + j]), 2);
    }
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(size) + 1e-12) << "example " << e;
    for (int g = 0; g < net.groups; ++g) {
      const std::size_t at = e * static_cast<std::size_t>(net.groups) + static_cast<std::size_t>(g);
      EXPECT_NEAR(got.squared_norms[at], want.squared_norms[at],
                  2e-5 * want.squared_norms[at] + 1e-9)
          << "example " << e << ", layer " << g;
    }
  }
}

TEST_P(CpuEngine, ClippedSumOfAPoissonBatch) {
  const auto& [c, level] = GetParam();
  const Network net = network_of(c);
  const Dataset data = examples_for(c, 70);
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    EngineSettings s;
    s.recipe = {.draw = Poisson{std::uint64_t{1} << 31},
                .contribution = ClippedGradient{kind, 0.01f}};
    s.threads = 2;
    const auto engine = cpu_engine_at(level, net, s);
    reference::ReferenceEngine oracle(net, s);
    const auto got = clipped_sum(*engine, s.recipe, net, data, 0.7f);
    const auto want = clipped_sum(oracle, s.recipe, net, data, 0.7f);
    EXPECT_EQ(engine->sampled(3), oracle.sampled(3));
    double error = 0;
    double size = 0;
    for (std::size_t j = 0; j < want.size(); ++j) {
      error += std::pow(double(got[j]) - want[j], 2);
      size += std::pow(double(want[j]), 2);
    }
    EXPECT_LE(std::sqrt(error),
              1e-5 * std::sqrt(size) + 1e-5 + cases::grid_error(0.7, want.size(), 70));
  }
}

TEST_P(CpuEngine, DoesNotDependOnTheNumberOfThreads) {
  const auto& [c, level] = GetParam();
  const Network net = network_of(c);
  const Dataset data = examples_for(c, 200);
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 31};
    s.threads = threads;
    const auto sum = clipped_sum(*cpu_engine_at(level, net, s), s.recipe, net, data, 0.7f);
    if (first.empty())
      first = sum;
    else
      EXPECT_EQ(first, sum) << threads << " threads";
  }
}

/// Example 7 becomes one that is not finite: by its numbers, or by a word that no other text
/// has. Returns the set without it.
Dataset spoil(const Case& c, Dataset& data) {
  const auto width = static_cast<std::size_t>(c.input.size());
  const auto at = 7 * static_cast<std::ptrdiff_t>(width);
  const auto next = at + static_cast<std::ptrdiff_t>(width);
  if (!data.is_text()) data = cases::as_floats(data);
  if (data.is_text()) {
    WordVectors vectors = *data.vectors;
    const auto bad = static_cast<std::uint16_t>(c.text.words - 1);  // no row of a table that learns
    for (std::uint16_t& token : data.tokens) token = std::min<std::uint16_t>(token, bad - 1);
    vectors.values.back() = NAN;
    data.vectors = std::make_shared<const WordVectors>(std::move(vectors));
    data.tokens[7 * width] = bad;
    data.lengths[7] = std::max<std::uint16_t>(data.lengths[7], 1);
  } else {
    std::fill(data.floats.begin() + at, data.floats.begin() + next, NAN);  // pooling drops a few
  }
  Dataset kept = data;
  if (data.is_text()) {
    kept.tokens.erase(kept.tokens.begin() + at, kept.tokens.begin() + next);
    kept.lengths.erase(kept.lengths.begin() + 7);
  } else {
    kept.floats.erase(kept.floats.begin() + at, kept.floats.begin() + next);
  }
  kept.labels.erase(kept.labels.begin() + 7);
  return kept;
}

TEST_P(CpuEngine, NonFiniteExamplesAndEmptyBatchesContributeNothing) {
  const auto& [c, level] = GetParam();
  if (c.text.words > 0 && c.text.columns == 0)
    GTEST_SKIP() << "without vectors every number of a text is a parameter";
  const Network net = network_of(c);
  Dataset data = examples_for(c, 40);
  const Dataset kept = spoil(c, data);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  s.diagnostics = true;
  const auto engine = cpu_engine_at(level, net, s);
  const auto got = clipped_sum(*engine, s.recipe, net, data);
  const Diagnostics diagnostics = engine->diagnostics();
  EXPECT_EQ(diagnostics.examples, 40u);
  EXPECT_EQ(diagnostics.non_finite, 1u);
  EXPECT_EQ(got, clipped_sum(*cpu_engine_at(level, net, s), s.recipe, net, kept));
  EXPECT_EQ(got, clipped_sum(*engine, s.recipe, net, data)) << "the same batch again";

  s.recipe.draw = Poisson{0};
  for (const float v : clipped_sum(*cpu_engine_at(level, net, s), s.recipe, net, kept))
    EXPECT_EQ(v, 0.0f);
}

TEST_P(CpuEngine, GivesLogits) {
  const auto& [c, level] = GetParam();
  const Network net = network_of(c);
  const Dataset data = examples_for(c, 50);
  const EngineSettings s;
  const auto engine = cpu_engine_at(level, net, s);
  reference::ReferenceEngine oracle(net, s);
  const TrainState state = weights_for(net);
  for (Engine* e : {engine.get(), static_cast<Engine*>(&oracle)}) e->set_state(state);
  const std::vector<float> got = engine->logits(data);
  const std::vector<float> want = oracle.logits(data);
  ASSERT_EQ(got.size(), 50u * static_cast<std::size_t>(net.outputs));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::fabs(want[i]))) << i;
  Dataset none = data;
  none.labels.clear();
  EXPECT_TRUE(engine->logits(none).empty());
}

const auto kLevels = testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512);
const auto kName = [](const auto& i) {
  return std::string(std::get<0>(i.param).name) + "_" +
         std::string(simd_name(std::get<1>(i.param)));
};
INSTANTIATE_TEST_SUITE_P(All, CpuEngine, testing::Combine(testing::ValuesIn(kCases), kLevels),
                         kName);
INSTANTIATE_TEST_SUITE_P(Texts, CpuEngine,
                         testing::Combine(testing::ValuesIn(cases::kTextCases), kLevels), kName);

TEST(CpuEngine, RefusesDataThatDoesNotFit) {
  const Network net = network_of(kCases[0]);
  EXPECT_THROW(make_cpu_engine(net, {})->load(examples_for(kCases[1], 3)), InputError);
}

}  // namespace
}  // namespace cudp
