#pragma once
// Short training on an engine that may share its examples with other ranks, and the results of it.
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/examples.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {

/// Returns a range of a whole data set, with Dataset::first set.
inline Dataset only(const Dataset& whole, ExampleRange range) {
  Dataset part = empty_like(whole);
  append_examples(whole, range, part);
  part.first = range.begin;
  part.whole = whole.size();
  return part;
}

}  // namespace cudp

namespace cudp::cases {

/// All results of a training.
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

/// Returns recipes with every kind of draw, contribution and step size, at about 20 examples a
/// batch.
inline std::vector<Way> ways() {
  const Poisson few{std::uint64_t{1} << 26};
  const OptimizerSettings adam{.kind = OptimizerKind::adam, .keep_average = true};
  return {
      {"clipped", {.draw = few, .contribution = ClippedGradient{}, .optimizer = adam}},
      {"per layer", {.draw = few, .contribution = ClippedGradient{Clipping::per_layer}}},
      {"adaptive",
       {.draw = few, .contribution = ClippedGradient{}, .step_size = StepSizeSettings{}}},
      {"transformed", {.draw = few, .contribution = TransformedGradient{}}},
      {"allocated", {.draw = Allocation{85}, .contribution = ClippedGradient{}, .optimizer = adam}},
      {"accepted",
       {.draw = Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.2, .rate = 0.02}},
        .contribution = AcceptedDirection{}}},
  };
}

using MakeEngine =
    std::function<std::unique_ptr<Engine>(const Network& net, const EngineSettings& settings)>;

/// Makes some steps on the examples of a rank.
inline Left train(const MakeEngine& make, const Network& net, const Dataset& data,
                  const StepRecipe& recipe, Ranks& ranks, int steps = 4) {
  EngineSettings s;
  s.recipe = recipe;
  s.key = {{5, 4, 3, 2, 1}};
  s.threads = 1;
  s.diagnostics = true;
  s.ranks = &ranks;
  const auto engine = make(net, s);
  engine->load(data);
  TrainState start = engine->state();
  start.parameters = weights_for(net).parameters;
  if (!start.average.empty()) start.average = start.parameters;
  if (!start.deviation.empty()) start.deviation.assign(start.deviation.size(), 0.05f);
  engine->set_state(start);
  const bool by_norms = std::holds_alternative<Candidates>(recipe.draw);
  Left left;
  if (by_norms) {
    engine->measure_norms();
    left.norm_total = engine->norm_total(1.0, 0x1p-30);
  }
  for (int t = 0; t < steps; ++t) {
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

inline void expect_same(const Left& got, const Left& want) {
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

}  // namespace cudp::cases
