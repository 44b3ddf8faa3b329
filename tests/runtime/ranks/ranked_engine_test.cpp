// Engines that share a training set, each with a range of it: the state that one engine with all of
// it has, to the bit.
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "runtime/data/range.hpp"
#include "runtime/device/joined_linear.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/thread_ranks.hpp"

namespace cudp {
namespace {

constexpr std::size_t kExamples = 1700;  // four tiles, the last one short
constexpr int kSteps = 4;

/// All that a training leaves.
struct Left {
  TrainState state;
  std::vector<float> norms;
  std::uint64_t norm_total = 0;
  Diagnostics seen;
};

struct Way {
  const char* name;
  StepRecipe recipe;
};

/// Every kind of draw, of contribution and of step size, at some 20 examples a batch.
std::vector<Way> ways() {
  const Poisson few{std::uint64_t{1} << 26};
  const OptimizerSettings adam{.kind = OptimizerKind::adam, .keep_average = true};
  return {
      {"clipped", {.draw = few, .contribution = ClippedGradient{}, .optimizer = adam}},
      {"per layer", {.draw = few, .contribution = ClippedGradient{Clipping::per_layer}}},
      {"adaptive",
       {.draw = few, .contribution = ClippedGradient{}, .step_size = StepSizeSettings{}}},
      {"transformed", {.draw = few, .contribution = TransformedGradient{}}},
      {"accepted",
       {.draw = Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.2, .rate = 0.02}},
        .contribution = AcceptedDirection{}}},
  };
}

Left train(const Network& net, const Dataset& data, const StepRecipe& recipe, Ranks& ranks) {
  EngineSettings s;
  s.recipe = recipe;
  s.key = {{5, 4, 3, 2, 1}};
  s.threads = 1;
  s.diagnostics = true;
  s.ranks = &ranks;
  const auto engine = make_cpu_engine(net, s);
  engine->load(data);
  TrainState start = engine->state();
  start.parameters = cases::weights_for(net).parameters;
  if (!start.average.empty()) start.average = start.parameters;
  if (!start.deviation.empty()) start.deviation.assign(start.deviation.size(), 0.05f);
  engine->set_state(start);
  const bool by_norms = std::holds_alternative<Candidates>(recipe.draw);
  Left left;
  if (by_norms) {
    engine->measure_norms();
    left.norm_total = engine->norm_total(1.0, 0x1p-30);
  }
  for (int t = 0; t < kSteps; ++t) {
    const StepScalars step{.learning_rate = 0.1f,
                           .noise_std = 0.7f,
                           .inverse_batch = 0.05f,
                           .bias1 = 1,
                           .bias2 = 1,
                           .ema_decay = 0.5f,
                           .clip_norm = 1.0f};
    engine->run(recipe, static_cast<std::uint64_t>(t), {&step, 1});
  }
  left.state = engine->state();
  left.norms = std::exchange(left.state.norms, {});
  left.seen = engine->diagnostics();
  return left;
}

void expect_same(const Left& got, const Left& want) {
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
          << what << " " << i;
  };
  same(got.state.parameters, want.state.parameters, "parameter");
  same(got.state.moment1, want.state.moment1, "first moment");
  same(got.state.moment2, want.state.moment2, "second moment");
  same(got.state.average, want.state.average, "average");
  same(got.state.mean, want.state.mean, "mean");
  same(got.state.deviation, want.state.deviation, "deviation");
  EXPECT_EQ(got.state.step_size_sum, want.state.step_size_sum);
  EXPECT_EQ(got.seen.examples, want.seen.examples);
  EXPECT_EQ(got.seen.clipped, want.seen.clipped);
  EXPECT_EQ(got.seen.non_finite, want.seen.non_finite);
  EXPECT_EQ(got.seen.loss_units, want.seen.loss_units);
  EXPECT_EQ(got.seen.norm_units, want.seen.norm_units);
}

class RankedEngine : public testing::TestWithParam<cases::Case> {};

TEST_P(RankedEngine, AnyNumberOfRanksHasTheStateOfOne) {
  const Network net = cases::network_of(GetParam());
  Dataset data = cases::examples_for(GetParam(), kExamples);
  // One row in another's range that no sum may see.
  if (!data.floats.empty()) data.floats[700 * data.floats.size() / kExamples] = 3e38f;
  const bool small = net.parameter_count < 3000;
  for (const Way& way : ways()) {
    if (net.text.columns == 0 && net.text.words > 0 &&
        std::holds_alternative<TransformedGradient>(way.recipe.contribution))
      continue;  // refused with a table that learns
    SCOPED_TRACE(way.name);
    Left whole;
    try {
      whole = train(net, data, way.recipe, alone());
    } catch (const Error&) {
      continue;  // not for this model
    }
    for (const int n : {2, 3, 7}) {
      if (n == 3 && !small) continue;
      SCOPED_TRACE(std::to_string(n) + " ranks");
      std::vector<Left> parts(static_cast<std::size_t>(n));
      on_ranks(n, [&](Ranks& ranks) {
        const Dataset mine = only(data, range_of(ranks.rank(), n, data.size()));
        parts[static_cast<std::size_t>(ranks.rank())] = train(net, mine, way.recipe, ranks);
      });
      std::vector<float> norms;
      std::uint64_t norm_total = 0;
      for (const Left& part : parts) {
        expect_same(part, whole);
        norms.insert(norms.end(), part.norms.begin(), part.norms.end());
        norm_total += part.norm_total;
      }
      EXPECT_EQ(norms, whole.norms);
      EXPECT_EQ(norm_total, whole.norm_total);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RankedEngine, testing::ValuesIn(cases::kCases),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Texts, RankedEngine, testing::ValuesIn(cases::kTextCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Each rank finds that the batch of all is too large, whatever its own is.
TEST(RankedEngineLimits, ABatchThatIsTooLargeFailsOnAll) {
  const cases::Case& c = cases::kCases[0];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, kExamples);
  const auto reasons = try_on_ranks(3, [&](Ranks& ranks) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 31};
    s.largest_sum = 700;  // more than any of them has
    s.threads = 1;
    s.ranks = &ranks;
    const auto engine = make_cpu_engine(net, s);
    const Dataset mine = only(data, range_of(ranks.rank(), 3, data.size()));
    engine->load(mine);
    engine->set_state(cases::weights_for(net));
    const StepScalars step = cases::still();
    engine->run(s.recipe, 0, {&step, 1});
  });
  for (const std::string& reason : reasons) EXPECT_EQ(reason, kBatchTooLarge);
}

TEST(RankedEngineLimits, LinearSumsAreThoseOfOne) {
  const cases::Case& c = cases::kCases[0];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, kExamples);
  const RandomStream stream{Generator::chacha20, {{1, 2, 3}}, Stream::sampling, 4};
  const std::vector<float> w = cases::weights_for(net).parameters;
  const std::vector<float> steps = {0.0f, 0.1f, 2.0f};
  const auto sums = [&](LinearEngine& engine) {
    std::vector<double> all;
    for (const bool drawn : {false, true}) {
      if (drawn) engine.draw_batch(stream, std::uint64_t{1} << 30);
      for (const auto& part :
           {engine.clipped_gradient_sum(w, 0.9), engine.clipped_losses(w, steps, 1.3)})
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const auto whole = make_cpu_linear_engine(data, Loss::logistic, 4096.0, 1);
  const std::vector<double> want = sums(*whole);
  for (const int n : {2, 4, 7})
    on_ranks(n, [&](Ranks& ranks) {
      const Dataset mine = only(data, range_of(ranks.rank(), n, data.size()));
      JoinedLinearEngine engine(make_cpu_linear_engine(mine, Loss::logistic, 4096.0, 1), 4096.0,
                                ranks);
      ensure(sums(engine) == want, "sums of linear models differ");
    });
}

}  // namespace
}  // namespace cudp
