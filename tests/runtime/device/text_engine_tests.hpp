#pragma once
// What layers for texts must do on every engine: be near the double-precision oracle at every
// width, and not depend on what no example may depend on. tests/runtime/device/text_engine_test.cpp
// tries the CPU and kernels under the emulator, tests/gpu/ a device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/examples.hpp"
#include "runtime/device/sensitivity.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {

/// An engine: the CPU's at one width of vectors, or a device's.
struct TextBackend {
  const char* name;
  std::optional<SimdLevel> level;
  std::unique_ptr<Engine> (*make)(const Network&, const EngineSettings&) = nullptr;
};
inline void PrintTo(const TextBackend& b, std::ostream* os) { *os << b.name; }

namespace {

using cases::Case;
using cases::clipped_sum;
using cases::cpu_engine_at;
using cases::texts_for;
using cases::weights_for;

std::unique_ptr<Engine> engine_of(const TextBackend& b, const Network& net,
                                  const EngineSettings& settings) {
  return b.level ? cpu_engine_at(*b.level, net, settings) : b.make(net, settings);
}

class TextEngine : public testing::TestWithParam<TextBackend> {
 protected:
  void SetUp() override {
    if (GetParam().level && !cases::has_simd_level(*GetParam().level))
      GTEST_SKIP() << "this processor has no " << simd_name(*GetParam().level);
  }

  bool is_cpu() const { return GetParam().level.has_value(); }
  const Arithmetic& arithmetic() const { return is_cpu() ? kCpuArithmetic : kCudaArithmetic; }
  std::unique_ptr<Engine> engine(const Network& net, const EngineSettings& settings = {}) const {
    return engine_of(GetParam(), net, settings);
  }

  /// Every example is in the batch.
  virtual EngineSettings settings() const {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 32};
    return s;
  }

  /// Gradients, norms and losses of all examples.
  PerExample per_example(const Network& net, const Dataset& data, const TrainState& state) const {
    const auto e = engine(net, settings());
    e->load(data);
    e->set_state(state);
    return e->per_example(all_of(data), true);
  }

  static std::vector<std::uint32_t> all_of(const Dataset& data) {
    std::vector<std::uint32_t> all(data.size());
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }

  void expect_the_same_sum_alone_and_in_company(const Case& c) const;
  void expect_padding_to_change_no_bit(const Case& c) const;
  void expect_the_norm_of_terms_that_cancel(const Case& c) const;
};

/// With examples beside it that are not finite and add nothing, the sum is the example's own.
void TextEngine::expect_the_same_sum_alone_and_in_company(const Case& c) const {
  SCOPED_TRACE(c.name);
  const Network net = cases::network_of(c);
  Dataset data = texts_for(c, 17);
  WordVectors vectors = *data.vectors;
  const int bad = c.text.words - 1;  // no row of a trainable table
  std::fill_n(vectors.values.end() - vectors.columns, vectors.columns, NAN);
  for (std::uint16_t& token : data.tokens) token = std::min<std::uint16_t>(token, bad - 1);
  data.vectors = std::make_shared<const WordVectors>(std::move(vectors));
  const auto width = static_cast<std::size_t>(c.input.width);
  const EngineSettings s = settings();
  for (const std::size_t at : {0u, 1u, 2u, 9u, 16u}) {
    Dataset company = data;
    for (std::size_t i = 0; i < company.size(); ++i)
      if (i != at) {
        company.tokens[i * width] = static_cast<std::uint16_t>(bad);
        company.lengths[i] = std::max<std::uint16_t>(company.lengths[i], 1);
      }
    Dataset alone = data;
    alone.tokens.assign(data.tokens.begin() + static_cast<std::ptrdiff_t>(at * width),
                        data.tokens.begin() + static_cast<std::ptrdiff_t>((at + 1) * width));
    alone.lengths = {data.lengths[at]};
    alone.labels = {data.labels[at]};
    EXPECT_EQ(clipped_sum(*engine(net, s), s.recipe, net, company, 0.01f),
              clipped_sum(*engine(net, s), s.recipe, net, alone, 0.01f))
        << "example " << at;
  }
}

void TextEngine::expect_padding_to_change_no_bit(const Case& c) const {
  SCOPED_TRACE(c.name);
  Case longer = c;
  longer.input.width += 13;
  const Network net = cases::network_of(c);
  const Network wide = cases::network_of(longer);
  const Dataset data = texts_for(c, 12);
  Dataset padded = data;
  padded.shape = longer.input;
  padded.tokens.clear();
  const auto width = static_cast<std::size_t>(c.input.width);
  for (std::size_t i = 0; i < data.size(); ++i) {
    padded.tokens.insert(padded.tokens.end(),
                         data.tokens.begin() + static_cast<std::ptrdiff_t>(i * width),
                         data.tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    padded.tokens.insert(padded.tokens.end(), 13, static_cast<std::uint16_t>(i % 3));
  }
  const PerExample a = per_example(net, data, weights_for(net));
  const PerExample b = per_example(wide, padded, weights_for(wide));
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.squared_norms, b.squared_norms);
  EXPECT_EQ(a.losses, b.losses);
}

/// A text of words x, -x, x, ..., as long as the input: what is left of a weight's gradient has the
/// norm that is measured, and adds no more than the clipping norm.
void TextEngine::expect_the_norm_of_terms_that_cancel(const Case& c) const {
  SCOPED_TRACE(c.model);
  const Network net = cases::network_of(c);
  Dataset data = texts_for(c, 1);
  const auto words = static_cast<std::size_t>(c.input.width);
  data.lengths = {static_cast<std::uint16_t>(words)};
  for (std::size_t t = 0; t < words; ++t) data.tokens[t] = static_cast<std::uint16_t>(t % 2);
  WordVectors v = *data.vectors;
  const auto columns = static_cast<std::size_t>(c.text.columns);
  for (std::size_t j = 0; j < columns; ++j)
    v.values[columns + j] = -v.values[j] * (1.0f + 1e-6f * static_cast<float>(j % 3));
  data.vectors = std::make_shared<const WordVectors>(std::move(v));

  const PerExample one = per_example(net, data, weights_for(net));
  double square = 0.0;
  for (const float g : one.gradients) square += double{g} * g;
  const float total = std::accumulate(one.squared_norms.begin(), one.squared_norms.end(), 0.0f);
  EXPECT_TRUE(std::abs(total - square) <= 1e-6 * square);

  EngineSettings s = settings();
  const float clip_norm = 1e-4f * static_cast<float>(std::sqrt(square));
  s.recipe.optimizer.kind = OptimizerKind::momentum;
  s.recipe.optimizer.momentum = 0.0f;
  const auto e = engine(net, s);
  e->load(data);
  TrainState start = weights_for(net);
  start.moment1.assign(net.parameter_count, 0.0f);
  e->set_state(start);
  const StepScalars scalars = cases::still(1.0f, clip_norm);
  e->run(s.recipe, 0, {&scalars, 1});
  double added = 0.0;
  for (const float g : e->state().moment1) added += double{g} * g;
  const double bound = double{clip_norm} * (1.0 + sensitivity_rounding_error(net, arithmetic()));
  EXPECT_GT(std::sqrt(added), 0.999 * double{clip_norm});
  EXPECT_TRUE(std::sqrt(added) <= bound) << std::sqrt(added) << ", bound " << bound;
}

void expect_near_the_oracle(const Network& net, const PerExample& got, const PerExample& want) {
  const std::size_t d = net.parameter_count;
  for (std::size_t e = 0; e < want.losses.size(); ++e) {
    EXPECT_TRUE(std::abs(got.losses[e] - want.losses[e]) <= 1e-5 * (1 + want.losses[e]));
    const auto [error, size] =
        cases::distance(got.gradients.data() + e * d, want.gradients.data() + e * d, d);
    EXPECT_TRUE(error <= 1e-5 * size + 1e-12) << "example " << e << ": " << error << " of " << size;
    for (int g = 0; g < net.groups; ++g) {
      const std::size_t at = e * static_cast<std::size_t>(net.groups) + static_cast<std::size_t>(g);
      EXPECT_TRUE(std::abs(got.squared_norms[at] - want.squared_norms[at]) <=
                  2e-5 * want.squared_norms[at] + 1e-9)
          << "example " << e << ", layer " << g;
    }
  }
}

/// One recurrent layer between words and logits.
std::string one_layer(const char* cell, int hidden, int number) {
  static constexpr const char* kOutputs[] = {"last", "mean", "sequence"};
  const std::string output = kOutputs[number % 3];
  const std::string embedding = number % 2 == 0
                                    ? "{ type = \"embedding\", name = \"e\", trainable = true },\n"
                                    : "{ type = \"embedding\", name = \"e\" },\n";
  return "name = \"one\"\nlayers = [\n" + embedding + "{ type = \"" + cell +
         "\", name = \"a\", hidden = " + std::to_string(hidden) +
         ", bidirectional = " + (number % 4 < 2 ? "true" : "false") + ", output = \"" + output +
         "\" },\n" + (output == "sequence" ? "{ type = \"mean\" },\n" : "") +
         "{ type = \"dense\", name = \"b\", out = \"outputs\" },\n]\n";
}

/// Texts of no word, of one, of all and of other numbers.
Dataset texts_of_every_length(const Case& c, std::size_t n) {
  Dataset data = texts_for(c, n);
  data.lengths[n - 1] = 1;
  return data;
}

/// The layer of this number (one_layer) against the oracle.
void expect_near(const TextBackend& backend, const char* cell, int hidden, int columns, int words,
                 int number) {
  const std::string model = one_layer(cell, hidden, number);
  SCOPED_TRACE(model + std::to_string(columns) + " columns, texts of " + std::to_string(words));
  const Case c{"one", model.c_str(), {1, 1, words}, 3, {11, columns}};
  const Network net = cases::network_of(c);
  const bool is_wide = hidden * (hidden + columns) * words > 100'000;
  const Dataset data = texts_of_every_length(c, is_wide ? 3 : 5);
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0u);
  reference::ReferenceEngine oracle(net, {});
  const auto engine = engine_of(backend, net, {});
  for (Engine* e : {engine.get(), static_cast<Engine*>(&oracle)}) {
    e->load(data);
    e->set_state(weights_for(net));
  }
  expect_near_the_oracle(net, engine->per_example(all, true), oracle.per_example(all, true));
}

TEST_P(TextEngine, EveryWidthIsNearTheOracle) {
  int number = 0;
  for (const char* cell : {"lstm", "gru"})
    for (const int hidden : {1, 5, 17, 32})
      for (const int columns : {3, 32})
        for (const int words : {1, 7, 80})
          expect_near(GetParam(), cell, hidden, columns, words, ++number);
}

/// Each of the larger sizes with each other once or more. Products of more terms than are taken at
/// a time are among them.
TEST_P(TextEngine, WideLayersAreNearTheOracle) {
  struct Sizes {
    int hidden, columns, words;
  };
  int number = 0;
  for (const char* cell : {"lstm", "gru"})
    for (const Sizes s :
         {Sizes{64, 3, 7}, Sizes{64, 100, 80}, Sizes{100, 32, 1}, Sizes{100, 100, 80},
          Sizes{128, 100, 7}, Sizes{128, 3, 80}, Sizes{17, 100, 7}, Sizes{100, 100, 130}})
      expect_near(GetParam(), cell, s.hidden, s.columns, s.words, ++number);
}

/// Of layers of which a tile is 64 x 64, 64 x 32 and 32 x 64 on a device.
TEST_P(TextEngine, SumsOfAllTilesAreNearTheOracle) {
  constexpr const char* kTiles = R"(
name = "tiles"
layers = [
  { type = "embedding", name = "e" },
  { type = "lstm", name = "a", hidden = 40, output = "sequence" },
  { type = "dense", name = "b", out = 20, per_token = true },
  { type = "tanh" },
  { type = "gru", name = "c", hidden = 30 },
  { type = "dense", name = "d", out = "outputs" },
]
)";
  const Case c{"tiles", kTiles, {1, 1, 9}, 3, {11, 37}};
  const Network net = cases::network_of(c);
  const Dataset data = texts_of_every_length(c, 6);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  reference::ReferenceEngine oracle(net, s);
  const auto got = clipped_sum(*engine(net, s), s.recipe, net, data, 0.7f);
  const auto want = clipped_sum(oracle, s.recipe, net, data, 0.7f);
  for (const ParameterTensor& p : net.parameters) {
    const auto [error, size] =
        cases::distance(got.data() + p.offset, want.data() + p.offset, p.size);
    EXPECT_TRUE(error <= 1e-5 * size + 1e-5 + cases::grid_error(0.7, p.size, data.size()))
        << p.name << ": " << error << " of " << size;
  }
}

TEST_P(TextEngine, AnExampleAddsTheSameBitsAloneAndInCompany) {
  for (const Case& c : cases::kTextCases)
    if (c.text.columns != 0) expect_the_same_sum_alone_and_in_company(c);
}

/// Every example's norm is taken among others here, and alone by per_example.
TEST_P(TextEngine, NormsAreTheSameBitsAloneAndInCompany) {
  for (const Case& c : cases::kTextCases) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 53);
    EngineSettings s;
    s.recipe = {.draw = Candidates{}, .contribution = AcceptedDirection{}};
    s.threads = 3;
    const auto e = engine(net, s);
    e->load(data);
    e->set_state(weights_for(net));
    e->measure_norms();
    const std::vector<float> norms = e->norms();
    const PerExample alone = e->per_example(all_of(data), false);
    for (const std::size_t i : {0u, 1u, 2u, 17u, 52u}) {
      const auto one = engine(net, s);
      const std::size_t listed[] = {i};
      const Dataset single = select_examples(data, listed);
      one->load(single);
      one->set_state(weights_for(net));
      one->measure_norms();
      EXPECT_EQ(norms[i], one->norms()[0]) << "example " << i;
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
      float square = 0.0f;
      for (int g = 0; g < net.groups; ++g)
        square += alone.squared_norms[i * static_cast<std::size_t>(net.groups) +
                                      static_cast<std::size_t>(g)];
      if (is_cpu()) {
        EXPECT_EQ(norms[i], std::sqrt(square)) << "example " << i;
      } else {
        EXPECT_NEAR(norms[i], std::sqrt(square), 1e-6 * norms[i]) << "example " << i;
      }
    }
  }
}

TEST_P(TextEngine, MorePaddingChangesNoBit) {
  for (const Case& c : cases::kTextCases) expect_padding_to_change_no_bit(c);
}

/// Words x, -x, x, ...: the terms of a weight's gradient cancel, and its norm is far below that of
/// a term. It is still the norm of what is added.
TEST_P(TextEngine, TermsThatCancelKeepTheClippingNorm) {
  static constexpr const char* kDense = R"(
name = "dense"
layers = [
  { type = "embedding", name = "e" },
  { type = "dense", name = "a", out = 20, per_token = true },
  { type = "mean" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
  const std::string lstm = one_layer("lstm", 9, 1);
  const std::string gru = one_layer("gru", 9, 1);
  for (const char* model : {kDense, lstm.c_str(), gru.c_str()})
    expect_the_norm_of_terms_that_cancel({"cancel", model, {1, 1, 80}, 2, {2, 24}});
}

/// A word's row is one parameter for all its places: what they pull adds up before the norm is
/// taken.
TEST_P(TextEngine, AWordThatStandsEightyTimesHasEightyTimesTheGradient) {
  const Case c{"bag", cases::kBagOfWords, {1, 1, 80}, 2, {81, 0}};
  const Network net = cases::network_of(c);
  Dataset data = texts_for(c, 2);
  data.lengths = {80, 80};
  data.labels = {1, 1};
  for (std::size_t t = 0; t < 80; ++t) {
    data.tokens[t] = 5;                                       // w w w ... w
    data.tokens[80 + t] = static_cast<std::uint16_t>(1 + t);  // 80 words
  }
  TrainState state = weights_for(net);  // of equal vectors
  for (std::size_t word = 1; word < 81; ++word)
    std::copy_n(state.parameters.begin(), 16,
                state.parameters.begin() + static_cast<std::ptrdiff_t>(16 * word));
  const PerExample got = per_example(net, data, state);
  const auto groups = static_cast<std::size_t>(net.groups);
  const double same = std::sqrt(double{got.squared_norms[0]});
  const double different = std::sqrt(double{got.squared_norms[groups]});
  const float* const row = got.gradients.data() + net.parameter_count + std::ptrdiff_t{16} * 7;
  double one = 0.0;
  for (int j = 0; j < 16; ++j) one += double{row[j]} * row[j];
  EXPECT_GT(one, 0.0);
  EXPECT_NEAR(same, 80.0 * std::sqrt(one), 1e-5 * same);
  EXPECT_NEAR(different, std::sqrt(80.0 * one), 1e-5 * different);
}

/// An activation must not work in the memory of the mean, which the way back needs.
TEST_P(TextEngine, AMeanOfNormOneBeforeAnActivationIsNearTheOracle) {
  static constexpr const char* kModel = R"(
name = "unit"
layers = [
  { type = "embedding", name = "e", trainable = true, columns = 16 },
  { type = "mean", unit = true },
  { type = "tanh" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
  const Case c{"unit", kModel, {1, 1, 13}, 3, {31, 0}};
  const Network net = cases::network_of(c);
  const Dataset data = texts_of_every_length(c, 6);
  reference::ReferenceEngine oracle(net, {});
  oracle.load(data);
  oracle.set_state(weights_for(net));
  expect_near_the_oracle(net, per_example(net, data, weights_for(net)),
                         oracle.per_example(all_of(data), true));
}

TEST_P(TextEngine, AnEmptyTextTrainsTheLastBiasAlone) {
  for (const Case& c : cases::kTextCases) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 1);  // the first is empty
    const PerExample got = per_example(net, data, weights_for(net));
    // The biases of later layers.
    const bool reached_through_zeros =
        net.spec.layers.size() > 4 || std::string(c.name) == "normalised_state";
    for (const ParameterTensor& t : net.parameters) {
      const float* const g = got.gradients.data() + t.offset;
      const bool any = std::any_of(g, g + t.size, [](float x) { return x != 0.0f; });
      const bool is_last = &t == &net.parameters.back();
      if (is_last) {
        EXPECT_TRUE(any) << t.name;
      } else if (!reached_through_zeros || t.group == 0) {
        EXPECT_FALSE(any) << t.name;
      }
    }
  }
}

/// What a step of AdaCliP and of DPIS does, noise included, in a state of the given settings.
struct StepsOfAMethod {
  EngineSettings settings;
  TrainState start;
};
TrainState after_steps(Engine& engine, const Dataset& data, const StepsOfAMethod& m) {
  engine.load(data);
  engine.set_state(m.start);
  if (std::holds_alternative<Candidates>(m.settings.recipe.draw)) engine.measure_norms();
  const StepScalars scalars{.learning_rate = 0.1f,
                            .noise_std = 0.1f,
                            .inverse_batch = 0.1f,
                            .bias1 = 1,
                            .bias2 = 1,
                            .ema_decay = 0,
                            .clip_norm = 1};
  engine.run(m.settings.recipe, 3, {&scalars, 1});
  return engine.state();
}
void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
  EXPECT_TRUE(error <= tolerance * size) << error << " of " << size;
}

TEST_P(TextEngine, CoordinatesAreClippedAsByTheOracle) {
  for (const Case& c : cases::kTextCases) {
    const Network net = cases::network_of(c);
    const auto* table = std::get_if<Embedding>(&net.layers[0].layer);
    if (table->trainable) continue;
    SCOPED_TRACE(c.name);
    StepsOfAMethod m;
    m.start = weights_for(net);
    m.settings.recipe.draw = Poisson{std::uint64_t{1} << 31};
    m.settings.recipe.contribution = TransformedGradient{{.beta1 = 0.9f,
                                                          .beta2 = 0.8f,
                                                          .min_variance = 1e-8f,
                                                          .max_variance = 0.5f,
                                                          .literal = false}};
    for (std::size_t j = 0; j < net.parameter_count; ++j) {
      m.start.deviation.push_back(0.01f * static_cast<float>(1 + j % 5));
      m.start.mean.push_back(0.002f * static_cast<float>(j % 3));
    }
    const Dataset data = texts_for(c, 30);
    reference::ReferenceEngine oracle(net, m.settings);
    const TrainState want = after_steps(oracle, data, m);
    const TrainState got = after_steps(*engine(net, m.settings), data, m);
    expect_near(got.parameters, want.parameters, 2e-5);
    expect_near(got.mean, want.mean, 1e-3);
    expect_near(got.deviation, want.deviation, 1e-3);
  }
}

TEST_P(TextEngine, ExamplesAreAcceptedAsByTheOracle) {
  for (const Case& c : cases::kTextCases) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    StepsOfAMethod m;
    m.start = weights_for(net);
    m.settings.recipe.draw =
        Candidates{{.clip = 0.8f, .multiple = 2.0f, .min_norm = 0.01f, .rate = 0.3f}};
    m.settings.recipe.contribution = AcceptedDirection{};
    const Dataset data = texts_for(c, 40);
    reference::ReferenceEngine oracle(net, m.settings);
    const TrainState want = after_steps(oracle, data, m);
    const TrainState got = after_steps(*engine(net, m.settings), data, m);
    expect_near(got.norms, want.norms, 1e-5);
    expect_near(got.parameters, want.parameters, 2e-5);
  }
}

TEST_P(TextEngine, ALongTextRuns) {
  const Case c{"long", "imdb-rnn", {1, 1, 2473}, 2, {50, 100}};
  const Network net = cases::network_of(c);
  const Dataset data = texts_for(c, 3);
  const PerExample got = per_example(net, data, weights_for(net));
  for (const float g : got.gradients) EXPECT_TRUE(std::isfinite(g));
}

std::string name_of_backend(const testing::TestParamInfo<TextBackend>& info) {
  return info.param.name;
}

}  // namespace
}  // namespace cudp
