#pragma once
// The edges between a network's layers, which engines keep in memory.
#include <cstddef>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// The edges that a layer reads and writes. A layer that works in place has one.
struct LayerEdges {
  std::size_t in = 0;
  std::size_t out = 0;
  bool gives_input_gradient = false;  ///< a layer before it has parameters

  bool is_in_place() const { return in == out; }
};

/// Edges of layers[0], the input, which only writes edge 0, and of layers[i], which runs
/// network.layers[i - 1]. An engine's layer says works_in_place(), and reads_own_output(): its
/// backward pass reads what the forward pass wrote, so the next layer must not work in place.
template <class Layers>
std::vector<LayerEdges> edges_of(const Network& network, const Layers& layers) {
  std::vector<LayerEdges> all(1);
  bool has_parameters_before = false;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const std::size_t in = all.back().out;
    const bool in_place = layers[i]->works_in_place() && !layers[i - 1]->reads_own_output();
    all.push_back({in, in_place ? in : in + 1, has_parameters_before});
    has_parameters_before = has_parameters_before || network.layers[i - 1].has_parameters();
  }
  return all;
}

}  // namespace cudp
