#pragma once
// What the benchmarks of whole DP-SGD steps share: models, data of the right size, weights,
// settings.
#include <cmath>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "runtime/engine.hpp"

namespace cudp::bench {

struct Setup {
  const char* model;
  Shape shape;
  std::size_t examples;
};
inline const Setup kCnn{"cnn", {1, 28, 28}, 60000};
inline const Setup kCifarCnn{"cifar-cnn", {3, 32, 32}, 50000};
inline const Setup kMlp{"mlp", {1, 28, 28}, 60000};
inline const Setup kLogistic{"logistic", {1, 28, 28}, 60000};

inline Network network_of(const Setup& s) {
  return build_network(parse_model(builtin_model(s.model), s.model, 10, "tanh"), s.shape, 10);
}

/// Operations of one example's products: forward, input gradient, weight gradient.
inline double flops(const Network& net) {
  double total = 0;
  bool first = true;
  for (const NetworkLayer& l : net.layers) {
    double products = 0;
    if (const auto* c = std::get_if<Conv2d>(&l.layer))
      products = static_cast<double>(l.out.size()) * c->kernel * c->kernel * l.in.channels;
    else if (std::holds_alternative<Dense>(l.layer))
      products = static_cast<double>(l.out.size()) * l.in.size();
    total += 2 * products * (first ? 2 : 3);  // the first layer's input needs no gradient
    if (products > 0) first = false;
  }
  return total;
}

/// Random images for a setup, made once for each shape.
inline const Dataset& images_for(const Setup& s) {
  const auto make = [](const Setup& of) {
    Dataset d;
    d.shape = of.shape;
    d.classes = 10;
    std::mt19937_64 random(1);
    d.bytes.resize(of.examples * static_cast<std::size_t>(of.shape.size()));
    for (auto& b : d.bytes) b = static_cast<std::uint8_t>(random());
    d.labels.resize(of.examples);
    for (auto& l : d.labels) l = static_cast<std::uint8_t>(random() % 10);
    return d;
  };
  static const Dataset grey = make(kCnn);
  static const Dataset colour = make(kCifarCnn);
  return s.shape.channels == 1 ? grey : colour;
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

inline EngineSettings settings_for(double batch, std::size_t examples) {
  EngineSettings s;
  s.clip.max_norm = 0.1f;
  s.optimizer.kind = OptimizerKind::momentum;
  s.key = {{1, 2, 3, 4, 5, 6, 7, 8}};
  s.sampling_threshold =
      static_cast<std::uint64_t>(std::ceil(batch / static_cast<double>(examples) * 0x1p32));
  return s;
}

inline StepScalars scalars_for(double batch) {
  return {.learning_rate = 1e-4f,
          .noise_std = 0.1f,
          .inverse_batch = static_cast<float>(1 / batch),
          .bias1 = 1,
          .bias2 = 1,
          .ema_decay = 0};
}

inline void dp_sgd_step(Engine& e) {
  e.sample_batch();
  e.sum_clipped_gradients();
  e.add_noise_and_update();
}

}  // namespace cudp::bench
