#pragma once
// What the benchmarks of whole DP-SGD steps share: models, data of the right size, weights,
// settings.
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/data/examples.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::bench {

/// Model and data of a benchmark: a built-in model, and the shape and number of random examples.
struct Setup {
  const char* model;
  Shape shape;
  std::size_t examples;
  int classes = 10;
  const char* name = model;
  TextShape text = {};
  bool coded = false;  ///< rows of a table like Adult, by their codes
};
inline const Setup kCnn{"cnn", {1, 28, 28}, 60000};
inline const Setup kCifarCnn{"cifar-cnn", {3, 32, 32}, 50000};
inline const Setup kMlp{"mlp", {1, 28, 28}, 60000};
inline const Setup kLogistic{"logistic", {1, 28, 28}, 60000};
// After DP-PCA, on the table Adult, and on scattering features.
inline const Setup kMlpPca{"mlp", {60, 1, 1}, 60000, 10, "mlp-60"};
inline const Setup kAdult{"logistic", {124, 1, 1}, 32561, 2, "adult"};
inline const Setup kAdultMlp{"mlp", {124, 1, 1}, 32561, 2, "adult-mlp"};
inline const Setup kAdultCoded{"logistic", {124, 1, 1}, 32561, 2, "adult-coded", {}, true};
inline const Setup kAdultMlpCoded{"mlp", {124, 1, 1}, 32561, 2, "adult-mlp-coded", {}, true};
/// Setup of a table with 10 million rows, which no cache of a processor can hold.
inline const Setup kTableCoded{"logistic", {124, 1, 1}, 10'000'000, 2, "table-coded", {}, true};
inline const Setup kScatterCnn{"scatter-cnn", {81, 7, 7}, 60000};
// Texts of the data set IMDb, full ones: 20,000 frozen vectors, or 10,004 that are trained.
inline const Setup kImdbRnn{"imdb-rnn", {1, 1, 80}, 25000, 2, "imdb-rnn", {20000, 100}};
inline const Setup kImdbLstm{"imdb-lstm", {1, 1, 256}, 25000, 2, "imdb-lstm", {10004, 0}};

inline Network network_of(const Setup& s) {
  return build_network(parse_model(builtin_model(s.model), s.model, s.classes), s.shape, s.classes,
                       s.text);
}

/// Returns the number of multiply-adds with a layer's weights in the forward pass of one example; 0
/// for layers that are not matrix products.
inline double products(const NetworkLayer& l) {
  if (const auto* c = std::get_if<Conv2d>(&l.layer))
    return static_cast<double>(l.out.size()) * c->kernel * c->kernel * l.in.channels;
  if (const auto* d = std::get_if<Dense>(&l.layer))
    return static_cast<double>(l.out.size()) * (d->per_token ? l.in.channels : l.in.size());
  if (const auto* r = std::get_if<Recurrent>(&l.layer))
    return static_cast<double>(l.in.width) * r->directions() * r->gates() * r->hidden *
           (l.in.channels + r->hidden);
  return 0.0;
}

/// Returns the number of floating-point operations of all matrix products for one example: in the
/// forward pass, for the gradients of inputs and for the gradients of weights.
inline double flops(const Network& net) {
  double total = 0;
  bool first = true;  // its input needs no gradient
  for (const NetworkLayer& l : net.layers) {
    total += 2 * products(l) * (first ? 2 : 3);
    // Of a recurrent layer the states need theirs.
    if (const auto* r = std::get_if<Recurrent>(&l.layer); r != nullptr && first)
      total += 2 * products(l) * r->hidden / (l.in.channels + r->hidden);
    if (l.has_parameters()) first = false;
  }
  return total;
}

/// Fills d with random texts of the maximum length. Half of the words are among 200 frequent ones,
/// because in English, too, a few hundred words occur again and again.
inline void fill_texts(Dataset& d, const Setup& s, std::mt19937_64& random) {
  const auto width = static_cast<std::size_t>(s.shape.width);
  const auto below = [&](int n) { return random() % static_cast<std::uint64_t>(n); };
  d.words = s.text.words;
  for (std::size_t i = 0; i < s.examples * width; ++i)
    d.tokens.push_back(
        static_cast<std::uint16_t>(below(2) == 0 ? below(200) : below(s.text.words)));
  d.lengths.assign(s.examples, static_cast<std::uint16_t>(width));
  if (s.text.columns == 0) return;
  WordVectors v{.rows = s.text.words, .columns = s.text.columns, .values = {}};
  v.values.resize(static_cast<std::size_t>(v.rows) * static_cast<std::size_t>(v.columns));
  for (float& x : v.values) x = 0.1f * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f);
  d.vectors = std::make_shared<const WordVectors>(std::move(v));
}

/// Returns a random table like Adult, with 124 features: 5 numeric ones, and 12 lists of categories
/// or intervals, of which the first is the most frequent.
inline Dataset coded_table(std::size_t examples, std::mt19937_64& random) {
  constexpr unsigned kCategories[] = {9, 16, 7, 15, 6, 5, 2, 42, 5, 4, 4, 4};
  RowLayout layout{.number_feature = {0, 1, 2, 3, 4}, .codes = 12, .features = 124};
  std::vector<float> numbers;
  std::vector<std::uint32_t> codes;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < examples; ++i) {
    std::uint64_t bits = random();
    const auto below = [&](unsigned n) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::uint32_t>(bits >> 33) % n;
    };
    for (int k = 0; k < 5; ++k) numbers.push_back(static_cast<float>(below(1u << 20)) * 0x1p-20f);
    std::uint32_t first = 5;
    for (const unsigned n : kCategories) {
      codes.push_back(first + (below(2) == 0 ? 0 : below(n)));
      first += n;
    }
    labels.push_back(static_cast<std::uint8_t>(below(2)));
  }
  return coded_dataset(std::move(layout), numbers, codes, std::move(labels), 2);
}

/// Returns random examples for a setup: images of bytes, features of floats, texts, or coded table
/// rows. They are made once for each shape and number of classes, and kept.
inline const Dataset& examples_for(const Setup& s) {
  static std::map<std::tuple<int, int, int, std::size_t>, Dataset> made;
  Dataset& d = made[{s.shape.channels, s.shape.size(), s.classes, s.coded ? s.examples : 0}];
  if (!d.labels.empty()) return d;
  if (s.coded) {
    std::mt19937_64 rows(1);
    return d = coded_table(s.examples, rows);
  }
  d.shape = s.shape;
  d.classes = s.classes;
  std::mt19937_64 random(1);
  const std::size_t n = s.examples * static_cast<std::size_t>(s.shape.size());
  if (s.text.words > 0) {
    fill_texts(d, s, random);
  } else if (s.shape.channels <= 3) {
    d.bytes.resize(n);
    for (auto& b : d.bytes) b = static_cast<std::uint8_t>(random());
  } else {
    d.floats.resize(n);
    for (auto& f : d.floats) f = static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f;
  }
  d.labels.resize(s.examples);
  for (auto& l : d.labels)
    l = static_cast<std::uint8_t>(random() % static_cast<unsigned>(s.classes));
  return d;
}

inline TrainState random_weights(const Network& net) {
  TrainState s;
  s.parameters.resize(net.parameter_count);
  s.moment1.resize(net.parameter_count);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const ParameterTensor& p : net.parameters)
    for (std::size_t i = 0; i < p.size; ++i)
      s.parameters[p.offset + i] =
          p.is_bias ? 0.1f : normal(random) / std::sqrt(static_cast<float>(p.fan_in));
  return s;
}

inline constexpr float kClipNorm = 0.1f;

/// Returns the settings of an engine that makes steps of DP-SGD with Poisson batches of this
/// expected size, and momentum.
inline EngineSettings settings_for(double batch, std::size_t examples) {
  EngineSettings s;
  s.recipe.draw = Poisson{
      static_cast<std::uint64_t>(std::ceil(batch / static_cast<double>(examples) * 0x1p32))};
  s.recipe.optimizer.kind = OptimizerKind::momentum;
  s.key = {{1, 2, 3, 4, 5, 6, 7, 8}};
  return s;
}

inline StepScalars scalars_for(double batch) {
  return {.learning_rate = 1e-4f,
          .noise_std = 0.1f,
          .inverse_batch = static_cast<float>(1 / batch),
          .bias1 = 1,
          .bias2 = 1,
          .ema_decay = 0,
          .clip_norm = kClipNorm};
}

}  // namespace cudp::bench
