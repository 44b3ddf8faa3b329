#pragma once
// Random data sets for linear models, and sums over them computed from the definition.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp::linear {

inline Dataset random_table(int examples, int features, std::uint32_t seed, float spread = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  Dataset data;
  data.shape = {features, 1, 1};
  data.classes = 2;
  for (int i = 0; i < examples; ++i) {
    for (int j = 0; j < features; ++j) data.floats.push_back(normal(random));
    data.labels.push_back(static_cast<std::uint8_t>(random() % 2));
  }
  return data;
}

inline std::vector<float> random_weights(int d, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> w;
  for (int j = 0; j < d; ++j) w.push_back(normal(random));
  return w;
}

/// Oracle: the definitions computed in double, one example at a time.
struct Oracle {
  const Dataset& data;
  bool hinge;
  double weight_of[2] = {1.0, 1.0};  ///< weight of each class's loss

  std::vector<double> row(std::size_t i) const {
    const auto n = static_cast<std::size_t>(data.shape.size());
    std::vector<double> x(data.floats.begin() + static_cast<std::ptrdiff_t>(i * n),
                          data.floats.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
    x.push_back(1.0);
    return x;
  }
  static double dot(const std::vector<double>& x, const std::vector<float>& w) {
    double z = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) z += x[j] * static_cast<double>(w[j]);
    return z;
  }
  double loss(double z, int label) const {
    const double m = label ? z : -z;
    return hinge ? std::fmax(0.0, 1.0 - m)
                 : std::fmax(-m, 0.0) + std::log1p(std::exp(-std::fabs(m)));
  }
  std::vector<double> gradient_sum(const std::vector<float>& w, double clip) const {
    std::vector<double> sum(w.size(), 0.0);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::vector<double> x = row(i);
      const double y = data.labels[i] ? 1.0 : -1.0;
      const double m = y * dot(x, w);
      const double c =
          weight_of[data.labels[i]] * (hinge ? (m < 1.0 ? -y : 0.0) : -y / (1.0 + std::exp(m)));
      double norm = 0.0;
      for (const double v : x) norm += c * v * c * v;
      const double factor = std::fmin(1.0, clip / std::sqrt(std::fmax(norm, 1e-300)));
      for (std::size_t j = 0; j < x.size(); ++j) sum[j] += factor * c * x[j];
    }
    return sum;
  }
  double loss_sum(const std::vector<float>& w, const std::vector<float>& d, double step,
                  double clip) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::vector<double> x = row(i);
      sum += std::fmin(
          weight_of[data.labels[i]] * loss(dot(x, w) - step * dot(x, d), data.labels[i]), clip);
    }
    return sum;
  }
};

}  // namespace cudp::linear
