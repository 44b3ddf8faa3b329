#pragma once
// Edges of a network: the arrays of activations between its layers.
#include <cstddef>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Indices of the edges (arrays of activations between layers) that a layer reads and writes. The
/// two are equal for a layer that overwrites its input.
struct LayerEdges {
  std::size_t in = 0;
  std::size_t out = 0;
  /// Whether an earlier layer is trained, so that the gradient of this layer's input is needed.
  bool gives_input_gradient = false;

  bool is_in_place() const { return in == out; }
};

/// Returns for each layer the edges (arrays of activations between layers) that it reads and
/// writes. layers[0] is the input layer, which only writes edge 0; layers[i] computes
/// network.layers[i - 1]. A layer works in place (overwrites its input) if its works_in_place() is
/// true and the layer before it does not need its own output in the backward pass. Layers: list of
/// pointers to layers.
template <class Layers>
std::vector<LayerEdges> edges_of(const Network& network, const Layers& layers) {
  std::vector<LayerEdges> all(1);
  bool trained_before = false;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const std::size_t in = all.back().out;
    const bool in_place = layers[i]->works_in_place() && !layers[i - 1]->reads_own_output();
    all.push_back({in, in_place ? in : in + 1, trained_before});
    trained_before = trained_before || network.layers[i - 1].has_parameters();
  }
  return all;
}

}  // namespace cudp
