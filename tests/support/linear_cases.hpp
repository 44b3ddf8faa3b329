#pragma once
// Small tables of two classes for the tests of linear methods.
#include <cmath>
#include <cstdint>
#include <random>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns rows of `features` numbers up to `scale`. The label is mostly the sign of the first
/// number.
inline Dataset linear_table(int examples, int features, std::uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  Dataset data;
  data.shape = {features, 1, 1};
  data.classes = 2;
  for (int i = 0; i < examples; ++i) {
    const float first = uniform(random);
    data.floats.push_back(first);
    for (int j = 1; j < features; ++j) data.floats.push_back(uniform(random));
    data.labels.push_back(first + 0.3f * uniform(random) > 0.0f ? 1 : 0);
  }
  return data;
}

/// Returns the data without example `out`.
inline Dataset without(const Dataset& data, std::size_t out) {
  Dataset less = data;
  const auto width = static_cast<std::ptrdiff_t>(data.shape.size());
  less.labels.erase(less.labels.begin() + static_cast<std::ptrdiff_t>(out));
  const auto at = less.floats.begin() + static_cast<std::ptrdiff_t>(out) * width;
  less.floats.erase(at, at + width);
  return less;
}

}  // namespace cudp
