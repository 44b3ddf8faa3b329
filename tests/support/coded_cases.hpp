#pragma once
// Coded tables (kernels/common/coded_rows.hpp), and models that read them, for tests of engines.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/examples.hpp"
#include "tests/support/influence.hpp"

namespace cudp::cases {

/// Returns a random table whose columns are numbers and groups of codes in random order. In one
/// cell of five no feature is set. Numbers are normal; with `hostile` they are any finite floats.
inline Dataset random_table(std::mt19937& random, int classes, std::size_t rows, bool hostile) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RowLayout layout;
  struct Group {
    int first, size;
  };
  std::vector<Group> groups;
  const int columns = 1 + below(24);
  const bool wide = below(6) == 0;  // more features than a byte tells apart
  for (int c = 0; c < columns; ++c) {
    if (below(2) == 0) {
      layout.number_feature.push_back(layout.features++);
    } else {
      groups.push_back({layout.features, 1 + below(wide ? 90 : 9)});
      layout.features += groups.back().size;
    }
  }
  layout.codes = static_cast<int>(groups.size());
  std::normal_distribution<float> normal;
  std::vector<float> numbers;
  std::vector<std::uint32_t> codes;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < rows; ++i) {
    const bool wild = hostile && below(2) == 0;
    for (int k = 0; k < layout.numbers(); ++k) {
      float x = normal(random);
      while (wild && below(2) == 0 && !std::isfinite(x = hostile_number(random))) {
      }
      numbers.push_back(std::isfinite(x) ? x : 1e19f);
    }
    for (const Group& g : groups)
      codes.push_back(
          static_cast<std::uint32_t>(below(5) == 0 ? layout.features : g.first + below(g.size)));
    labels.push_back(static_cast<std::uint8_t>(below(classes)));
  }
  return coded_dataset(std::move(layout), numbers, codes, std::move(labels), classes);
}

/// Model that applies activations to the input, before the first dense layer.
inline constexpr const char* kFunctionFirst = R"(
name = "function-first"
layers = [
  { type = "tanh" },
  { type = "dense", name = "a", out = 5 },
  { type = "relu" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
/// Model whose hidden layers have one tile of columns and a tail, or several tiles.
inline constexpr const char* kHidden = R"(
name = "hidden"
layers = [
  { type = "dense", name = "a", out = 70 },
  { type = "tanh" },
  { type = "dense", name = "b", out = 9 },
  { type = "relu" },
  { type = "dense", name = "c", out = "outputs" },
]
)";

struct CodedModel {
  const char* name;
  const char* model;
  int classes;
};
/// Models to test. The first two have a kernel of their own (kernels/fused/linear_sum.hpp).
inline constexpr CodedModel kCodedModels[] = {{"logistic", "logistic", 2},
                                              {"svm", "svm", 2},
                                              {"softmax", "logistic", 5},
                                              {"mlp", "mlp", 2},
                                              {"hidden", kHidden, 3},
                                              {"norm", kNormAfterTanh, 3},
                                              {"function_first", kFunctionFirst, 2}};

enum class Adds { flat, per_layer, automatic, directions, transformed };

/// Returns a case: a model on a random table, and a step whose contribution is `adds`. Everything
/// follows from `seed`.
inline InfluenceCase coded_case(const CodedModel& model, Adds adds, unsigned seed, std::size_t rows,
                                bool hostile) {
  std::mt19937 random(seed);
  random.discard(7);
  InfluenceCase c;
  c.data = random_table(random, model.classes, rows, hostile);
  const std::string_view text = builtin_model(model.model);
  c.model = text.empty() ? model.model : text;
  c.net =
      build_network(parse_model(c.model, model.name, model.classes), c.data.shape, model.classes);
  c.state = weights_for(c.net);
  c.state.moment1.assign(c.net.parameter_count, 0.0f);
  if (hostile && random() % 3 == 0) {
    const float scale = random() % 2 == 0 ? 1e18f : 1e-18f;
    for (float& w : c.state.parameters)
      if (random() % 5 == 0) w *= scale;
  }
  prepare(c, seed);
  EngineSettings& s = c.settings;
  if (adds == Adds::per_layer) s.recipe.contribution = ClippedGradient{Clipping::per_layer};
  if (adds == Adds::automatic) s.recipe.contribution = ClippedGradient{Clipping::automatic};
  if (adds == Adds::directions) {
    s.recipe.draw = Candidates{{.clip = 1e-3, .multiple = 1.0, .min_norm = 1e-3, .rate = 999.0}};
    s.recipe.contribution = AcceptedDirection{};
  }
  if (adds == Adds::transformed) {
    s.recipe.contribution = TransformedGradient{{.beta1 = 1.0f, .beta2 = 1.0f}};
    std::normal_distribution<float> normal;
    for (std::size_t j = 0; j < c.net.parameter_count; ++j) {
      c.state.mean.push_back(0.01f * normal(random));
      c.state.deviation.push_back(0.05f + 0.1f * std::abs(normal(random)));
    }
  }
  if (std::holds_alternative<ClippedGradient>(c.contribution()))
    c.clip_norm = hostile ? any_clip_norm(c, random) : 0.7f;
  state_bound(c);
  return c;
}

/// Returns a case whose rows have targets in -1..1. model: as CodedModel::model.
inline InfluenceCase target_case(const char* model, Loss loss, Adds adds, unsigned seed,
                                 bool hostile = false, std::size_t rows = 60) {
  InfluenceCase c = coded_case({"target", model, 1}, adds, seed, rows, hostile);
  c.net.spec.loss = loss;
  c.net.spec.huber = 0.3f;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> target(-1.0f, 1.0f);
  for (std::size_t i = 0; i < c.data.size(); ++i) c.data.targets.push_back(target(random));
  return c;
}

/// Returns a weight for each class, all different, 1 for the last one.
inline std::vector<float> falling_weights(int classes) {
  std::vector<float> weights;
  for (int k = 0; k < classes; ++k)
    weights.push_back(static_cast<float>(k + 1) / static_cast<float>(classes) *
                      (k == 0 ? 0.3f : 1.0f));
  weights.back() = 1.0f;
  return weights;
}

}  // namespace cudp::cases
