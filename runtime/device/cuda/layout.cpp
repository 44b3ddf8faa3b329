#include "runtime/device/cuda/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "runtime/device/layer_edges.hpp"

namespace cudp::cuda::inline CUDP_SIMT {
namespace {

/// Adds the edges between the layers to `layout`. Values and gradients get the borders that the
/// layers need.
void add_edges(CudaLayout& layout, const Network& network, const std::vector<LayerEdges>& edges) {
  // A sequence is stored position by position. Texts are read from the data set in place.
  const auto add = [&](const Shape& s, bool is_sequence) {
    const Planes p =
        is_sequence ? Planes{1, s.width, s.channels, 0} : Planes{s.channels, s.height, s.width, 0};
    layout.edges.push_back(
        {.number = layout.edges.size(), .value = p, .gradient = p, .has_gradient = false});
  };
  add(network.text.words > 0 ? Shape{} : network.input, false);
  for (std::size_t i = 1; i < edges.size(); ++i) {
    const NetworkLayer& l = network.layers[i - 1];
    const LayerEdges& of = edges[i];
    if (!of.is_in_place()) add(l.out, l.out_sequence);
    CudaEdge& in = layout.edges[of.in];
    CudaEdge& out = layout.edges[of.out];
    out.has_gradient = out.has_gradient || of.gives_input_gradient || l.has_parameters();
    in.value.border = std::max(in.value.border, layout.layers[i]->input_border());
    if (of.gives_input_gradient)
      out.gradient.border = std::max(out.gradient.border, layout.layers[i]->gradient_border(l));
  }
}

/// Merges in-place activations with the adjacent layers as far as these support it. The layer
/// before may apply the activation function to its own output; the activation's forward() is then
/// skipped. The layer after may multiply its own input gradient by the activation's derivative; the
/// activation's backward() is then skipped. layout: the network's memory layout, which is changed.
/// edges: edges of each layer. choices: options that determine how layers are computed.
/// network_layers: the layers of the network.
void fold_activations(CudaLayout& layout, const std::vector<NetworkLayer>& network_layers,
                      const std::vector<LayerEdges>& edges, const LayoutChoices& choices) {
  const auto& layers = layout.layers;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto* const function = std::get_if<Activate>(&network_layers[i - 1].layer);
    if (function == nullptr || !edges[i].is_in_place()) continue;
    if (i > 1 && layers[i - 1]->takes_output_function(network_layers[i - 2], choices, *function)) {
      layers[i - 1]->take_output_function(*function);
      layers[i]->skip_forward();
    }
    if (i + 1 < layers.size() && layers[i + 1]->takes_input_function(network_layers[i], choices)) {
      layers[i + 1]->take_input_function(*function);
      layers[i]->skip_backward();
    }
  }
}

/// Number formats (fp32, or rounded to TF32) in which a layer stores two arrays: its output, and
/// the gradient of its input.
struct Stored {
  Precision output_as = Precision::fp32;
  Precision input_gradient_as = Precision::fp32;
};

/// Decides where the values and gradients that tensor cores multiply are rounded to TF32. Several
/// layers may write an array one after another. If the last of them can round, it does so, and
/// value_as or gradient_as of the edge records this. Otherwise every layer that reads the array
/// rounds it on each load. Returns the number formats in which each layer stores its output and its
/// input gradient. layout: the network's memory layout, which is changed. edges: edges of each
/// layer. choices: options that determine how layers are computed. network_layers: the layers of
/// the network.
std::vector<Stored> round_edges(CudaLayout& layout, const std::vector<NetworkLayer>& network_layers,
                                const std::vector<LayerEdges>& edges,
                                const LayoutChoices& choices) {
  const auto& layers = layout.layers;
  std::vector<Stored> stored(layers.size());
  const auto asked = [&](std::size_t i, auto&& question) {
    return (*layers[i].*question)(network_layers[i - 1], choices);
  };
  for (std::size_t edge = 0; edge < layout.edges.size(); ++edge) {
    bool reads_value = false;
    bool reads_gradient = false;
    Precision* value_writer = nullptr;
    Precision* gradient_writer =
        edge + 1 == layout.edges.size() ? &layout.loss_gradient_as : nullptr;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i > 0 && asked(i, &CudaLayer::reads_rounded)) {
        reads_value = reads_value || edges[i].in == edge;
        reads_gradient = reads_gradient || edges[i].out == edge;
      }
      if (edges[i].out == edge && layers[i]->writes_output())
        value_writer =
            i == 0 || asked(i, &CudaLayer::rounds_output) ? &stored[i].output_as : nullptr;
    }
    for (std::size_t i = layers.size(); i-- > 1;)
      if (edges[i].in == edge && edges[i].gives_input_gradient &&
          layers[i]->writes_input_gradient())
        gradient_writer =
            asked(i, &CudaLayer::rounds_input_gradient) ? &stored[i].input_gradient_as : nullptr;
    if (reads_value && value_writer != nullptr)
      *value_writer = layout.edges[edge].value_as = Precision::tf32;
    if (reads_gradient && gradient_writer != nullptr)
      *gradient_writer = layout.edges[edge].gradient_as = Precision::tf32;
  }
  return stored;
}

}  // namespace

CudaLayout build_layout(const Network& network, const LayoutChoices& choices) {
  CudaLayout layout;
  layout.layers.push_back(make_input());
  for (const NetworkLayer& l : network.layers) layout.layers.push_back(make_layer(l.layer));
  const std::vector<LayerEdges> edges = edges_of(network, layout.layers);
  add_edges(layout, network, edges);
  fold_activations(layout, network.layers, edges, choices);
  const std::vector<Stored> stored = round_edges(layout, network.layers, edges, choices);
  for (std::size_t i = 0; i < edges.size(); ++i)
    layout.layers[i]->lay_out({.network = &network,
                               .layer = i > 0 ? &network.layers[i - 1] : nullptr,
                               .in = layout.edges[edges[i].in],
                               .out = layout.edges[edges[i].out],
                               .gives_input_gradient = edges[i].gives_input_gradient,
                               .output_as = stored[i].output_as,
                               .input_gradient_as = stored[i].input_gradient_as},
                              choices, layout.storage);
  return layout;
}

}  // namespace cudp::cuda::inline CUDP_SIMT
