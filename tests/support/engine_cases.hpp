#pragma once
// Models, data and weights that all engines are tested with.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/simd_level.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cases {

/// Model with what the built-in ones lack: odd sizes, padding, group norm, both poolings.
inline constexpr const char* kMixed = R"(
name = "mixed"
activation = "tempered_sigmoid"
layers = [
  { type = "conv2d", name = "a", out = 5, kernel = 3, stride = 1, pad = 1 },
  { type = "groupnorm", name = "n", groups = 5 },
  { type = "activation" },
  { type = "avgpool", kernel = 3, stride = 2 },
  { type = "conv2d", name = "b", out = 20, kernel = 3, stride = 2, pad = 2 },
  { type = "relu" },
  { type = "maxpool", kernel = 3, stride = 1 },
  { type = "dense", name = "c", out = 7 },
  { type = "tanh" },
  { type = "activation" },
  { type = "dense", name = "d", out = "outputs" },
]
)";
/// Model with a padded convolution after a dense layer, and with pooling and normalisation of the
/// input itself.
inline constexpr const char* kUnusual = R"(
name = "unusual"
layers = [
  { type = "maxpool", kernel = 2, stride = 2 },
  { type = "groupnorm", name = "n", groups = 1 },
  { type = "dense", name = "a", out = 18 },
  { type = "tanh" },
  { type = "conv2d", name = "b", out = 33, kernel = 2, pad = 1 },
  { type = "relu" },
  { type = "dense", name = "c", out = "outputs" },
]
)";
/// Model with strides larger than the kernel, more than 64 channels, and a convolution as last
/// layer.
inline constexpr const char* kStrided = R"(
name = "strided"
activation = "tanh"
layers = [
  { type = "activation" },
  { type = "conv2d", name = "a", out = 70, kernel = 2, stride = 3 },
  { type = "activation" },
  { type = "conv2d", name = "b", out = 6, kernel = 3, stride = 2, pad = 1 },
  { type = "groupnorm", name = "n", groups = 2 },
  { type = "conv2d", name = "c", out = 3, kernel = 2 },
]
)";

struct Case {
  const char* name;
  const char* model;  ///< a built-in name, or a description
  Shape input;
  int classes;
  TextShape text = {};
};
inline void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

inline const Case kCases[] = {
    {"logistic", "logistic", {13, 1, 1}, 2}, {"softmax", "logistic", {37, 1, 1}, 11},
    {"svm", "svm", {16, 1, 1}, 2},           {"mlp", "mlp", {1, 5, 4}, 10},
    {"cnn", "cnn", {1, 28, 28}, 10},         {"cifar_cnn", "cifar-cnn", {3, 8, 8}, 10},
    {"mixed", kMixed, {2, 11, 9}, 4},        {"mixed_grey", kMixed, {1, 9, 11}, 3},
    {"unusual", kUnusual, {3, 6, 4}, 2},     {"strided", kStrided, {2, 10, 11}, 3},
};

/// Model for texts with a frozen embedding, a dense layer per word, and two bidirectional recurrent
/// layers, an LSTM and a GRU.
inline constexpr const char* kStacked = R"(
name = "stacked"
loss = "softmax"
activation = "tempered_sigmoid"
layers = [
  { type = "embedding", name = "words" },
  { type = "dense", name = "a", out = 7, per_token = true },
  { type = "activation" },
  { type = "gru", name = "b", hidden = 18, bidirectional = true, output = "sequence" },
  { type = "tanh" },
  { type = "lstm", name = "c", hidden = 5, bidirectional = true, output = "mean" },
  { type = "dense", name = "d", out = "outputs" },
]
)";
/// Model for texts whose embedding trains the vectors of the first words only.
inline constexpr const char* kTrainable = R"(
name = "trainable"
layers = [
  { type = "embedding", name = "words", trainable = true, trainable_rows = 20 },
  { type = "tanh" },
  { type = "lstm", name = "a", hidden = 17, output = "sequence" },
  { type = "mean" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
/// Model for texts that trains nothing but the words' vectors before its last layer.
inline constexpr const char* kBagOfWords = R"(
name = "bag"
layers = [
  { type = "embedding", name = "words", trainable = true, columns = 16 },
  { type = "mean", unit = true },
  { type = "dense", name = "b", out = "outputs" },
]
)";
inline constexpr const char* kGru = R"(
name = "gru"
layers = [
  { type = "embedding", name = "words" },
  { type = "gru", name = "a", hidden = 3 },
  { type = "relu" },
  { type = "dense", name = "b", out = "outputs" },
]
)";

/// A layer that normalises after a recurrent one: the recurrent layer runs one text after another.
inline constexpr const char* kNormalisedState = R"(
name = "normalised_state"
layers = [
  { type = "embedding", name = "words" },
  { type = "gru", name = "a", hidden = 12 },
  { type = "groupnorm", name = "norm", groups = 3 },
  { type = "dense", name = "b", out = "outputs" },
]
)";

/// Cases with texts.
inline const Case kTextCases[] = {
    {"imdb_rnn", "imdb-rnn", {1, 1, 24}, 2, {50, 100}},
    {"imdb_mean", "imdb-mean", {1, 1, 24}, 2, {50, 12}},
    {"stacked", kStacked, {1, 1, 21}, 3, {30, 10}},
    {"trainable", kTrainable, {1, 1, 13}, 2, {31, 9}},
    {"bag", kBagOfWords, {1, 1, 13}, 4, {31, 0}},
    {"gru", kGru, {1, 1, 9}, 2, {31, 5}},
    {"normalised_state", kNormalisedState, {1, 1, 11}, 3, {30, 7}},
};

inline Network network_of(const Case& c) {
  const std::string_view text = builtin_model(c.model);
  return build_network(parse_model(text.empty() ? c.model : text, c.name, c.classes), c.input,
                       c.classes, c.text);
}

/// Returns texts of every length, with repeated words; the first is empty, the second has full
/// length. Beyond a text's end are words that no engine may read.
inline Dataset texts_for(const Case& c, std::size_t n) {
  Dataset d;
  d.shape = c.input;
  d.classes = c.classes;
  d.words = c.text.words;
  std::mt19937 random(23);
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  if (c.text.columns > 0) {
    WordVectors v{.rows = c.text.words, .columns = c.text.columns, .values = {}};
    std::normal_distribution<float> normal;
    v.values.resize(static_cast<std::size_t>(v.rows) * static_cast<std::size_t>(v.columns));
    for (float& x : v.values) x = normal(random) / std::sqrt(static_cast<float>(v.columns));
    d.vectors = std::make_shared<const WordVectors>(std::move(v));
  }
  const int most = c.input.width;
  for (std::size_t i = 0; i < n; ++i) {
    d.lengths.push_back(static_cast<std::uint16_t>(i == 0 ? 0 : i == 1 ? most : below(most + 1)));
    for (int t = 0; t < most; ++t)  // the first words are the commonest
      d.tokens.push_back(static_cast<std::uint16_t>(below(below(c.text.words) + 1)));
    d.labels.push_back(static_cast<std::uint8_t>(below(c.classes)));
  }
  return d;
}

/// Returns n examples for a case: bytes for images, floats for flat vectors, words for texts.
inline Dataset examples_for(const Case& c, std::size_t n) {
  if (c.text.words > 0) return texts_for(c, n);
  Dataset d;
  d.shape = c.input;
  d.classes = c.classes;
  std::mt19937 random(11);
  if (c.input.height > 1) {
    d.bytes.resize(n * static_cast<std::size_t>(c.input.size()));
    for (auto& b : d.bytes) b = static_cast<std::uint8_t>(random() & 255);
    d.shift = -0.3f;
  } else {
    d.floats.resize(n * static_cast<std::size_t>(c.input.size()));
    for (auto& f : d.floats) f = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  }
  d.labels.resize(n);
  for (auto& l : d.labels)
    l = static_cast<std::uint8_t>(random() % static_cast<unsigned>(c.classes));
  return d;
}

/// Returns the same examples with features as floats.
inline Dataset as_floats(Dataset d) {
  for (const std::uint8_t b : d.bytes)
    d.floats.push_back(d.scale * static_cast<float>(b) + d.shift);
  d.bytes.clear();
  return d;
}

inline TrainState weights_for(const Network& net) {
  TrainState s;
  s.parameters.resize(net.parameter_count);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const ParameterTensor& p : net.parameters)
    for (std::size_t i = 0; i < p.size; ++i)
      s.parameters[p.offset + i] = p.is_bias
                                       ? 0.3f * normal(random)
                                       : normal(random) / std::sqrt(static_cast<float>(p.fan_in));
  return s;
}

/// Returns whether this build and processor have a SIMD level.
inline bool has_simd_level(SimdLevel level) {
  setenv("CUDP_SIMD_LEVEL", std::string(simd_name(level)).c_str(), 1);
  const bool available = best_simd_level() == level;
  unsetenv("CUDP_SIMD_LEVEL");
  return available;
}

inline std::unique_ptr<Engine> cpu_engine_at(SimdLevel level, const Network& net,
                                             const EngineSettings& settings) {
  setenv("CUDP_SIMD_LEVEL", std::string(simd_name(level)).c_str(), 1);
  auto engine = make_cpu_engine(net, settings);
  unsetenv("CUDP_SIMD_LEVEL");
  return engine;
}

/// Returns the scalars of a step without noise, whose g~ is the sum itself.
inline StepScalars still(float learning_rate = 0.0f, float clip_norm = 1.0f) {
  return {.learning_rate = learning_rate,
          .noise_std = 0,
          .inverse_batch = 1,
          .bias1 = 1,
          .bias2 = 1,
          .ema_decay = 0,
          .clip_norm = clip_norm};
}

/// Returns the sum of clipped gradients, read from the state after a step of SGD with learning rate
/// 1 and no noise.
inline std::vector<float> clipped_sum(Engine& engine, const StepRecipe& recipe, const Network& net,
                                      const Dataset& data, float clip_norm = 1.0f) {
  engine.load(data);
  const TrainState start = weights_for(net);
  engine.set_state(start);
  const StepScalars one = still(1.0f, clip_norm);
  engine.run(recipe, 3, {&one, 1});
  std::vector<float> moved = engine.state().parameters;
  for (std::size_t j = 0; j < moved.size(); ++j) moved[j] = start.parameters[j] - moved[j];
  return moved;
}

/// Returns a bound on the error of a sum of n examples by rounding each of its d numbers to the
/// grid: 3.4 standard deviations of independent errors of at most half a grid step (tests/kernels
/// checks exact values).
inline double grid_error(double max_norm, std::size_t d, std::size_t n) {
  return sum_grid(max_norm) * std::sqrt(static_cast<double>(d) * static_cast<double>(n));
}

/// Distance |a - b| of two vectors, and |b|, in double.
struct Distance {
  double error = 0.0;
  double size = 0.0;
};
template <class A, class B>
Distance distance(const A* a, const B* b, std::size_t n) {
  Distance d;
  for (std::size_t j = 0; j < n; ++j) {
    d.error += std::pow(static_cast<double>(a[j]) - static_cast<double>(b[j]), 2);
    d.size += std::pow(static_cast<double>(b[j]), 2);
  }
  return {std::sqrt(d.error), std::sqrt(d.size)};
}

}  // namespace cudp::cases
