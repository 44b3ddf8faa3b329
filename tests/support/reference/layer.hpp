#pragma once
// Types that the layers of the oracle share.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp::reference {

using Values = std::vector<double>;

inline std::size_t index(const Shape& s, int channel, int y, int x) {
  return (static_cast<std::size_t>(channel) * s.height + y) * s.width + x;
}

/// An example as an engine sees it: its features, or a text's words, how many they are, and the
/// words' vectors.
struct Input {
  Input(Values v) : values(std::move(v)) {}

  Values values;
  int length = 0;
  const WordVectors* vectors = nullptr;
};

/// Parameters of a layer. weight: its first tensor, followed by the others. weight_gradient:
/// gradients in the same order; null for a forward pass alone.
struct LayerParameters {
  const double* weight = nullptr;
  const double* bias = nullptr;
  double* weight_gradient = nullptr;
  double* bias_gradient = nullptr;
  int length = 0;
  const WordVectors* vectors = nullptr;
};

}  // namespace cudp::reference
