#include "runtime/device/cpu/layout.hpp"

#include <algorithm>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/device/layer_edges.hpp"

namespace cudp::cpu {
namespace {

/// Builds the memory layout of a network: assigns an offset to every array that a worker stores per
/// example (values and gradients of the edges between layers, numbers saved from forward to
/// backward pass) and to the packed weights.
///
/// Layers up to the last one with runs_per_example() process one example after the other, so that
/// the example's numbers stay in the first-level cache. The layers after it, from layer number
/// first_together on, process all examples of a worker at once, so that weights are read once for
/// many examples; only their edges store the gradients of all these examples.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(const Network& network) { l_.network = &network; }

  CpuLayout build() {
    const Network& network = *l_.network;
    l_.layers.push_back(make_input());
    for (const NetworkLayer& n : network.layers)
      l_.layers.push_back(std::visit([](const auto& kind) { return make_layer(kind); }, n.layer));
    for (std::size_t i = 0; i < l_.layers.size(); ++i)
      if (l_.layers[i]->runs_per_example()) l_.first_together = i + 1;
    for (const auto& layer : l_.layers)
      l_.min_in_flight = std::max(l_.min_in_flight, layer->min_in_flight());
    const auto& first = l_.layers.size() > 1 ? l_.layers[1] : l_.layers[0];
    passes_codes_ = first->takes_codes() && network.input.height == 1 && network.input.width == 1;
    add_sites();
    place_gradients();
    for (const CpuEdge& e : l_.edges) add_zeros(e);
    std::size_t parameters = network.parameter_count;
    for (const ParameterTensor& t : network.frozen) parameters += t.size;
    l_.storage.packed_offset.resize(parameters);
    l_.storage.transposed_offset.assign(parameters, -1);
    for (std::size_t i = 0; i < sites_.size(); ++i) lay_out(i);
    if (l_.storage.example_gradient == 0 && l_.storage.packed > std::int64_t{128} * 1024)
      l_.chunk = kMaxChunk;
    narrow(l_.storage.values * kMaxChunk);  // the offsets of examples in flight are 32-bit too
    narrow(l_.storage.kept_gradients * kMaxChunk);
    narrow(l_.storage.saved * kMaxChunk);
    return std::move(l_);
  }

 private:
  /// Creates the edges, and sets which of them each layer reads and writes. Only layers after the
  /// first trained one compute the gradient of their input.
  void add_sites() {
    const Network& network = *l_.network;
    sites_ = edges_of(network, l_.layers);
    add_edge(network.input, network.text.words > 0, 0);
    for (std::size_t i = 1; i < sites_.size(); ++i) {
      const NetworkLayer& n = network.layers[i - 1];
      if (!sites_[i].is_in_place()) add_edge(n.out, n.out_sequence, i);
      if (n.has_parameters() && !sites_[i].gives_input_gradient) l_.first_parametric = i;
    }
  }

  /// Adds an edge: the array of activations, of shape `s`, to which layer number `maker` writes its
  /// output. Its border of zeros is as wide as the layer that reads the edge requires; layers that
  /// work in place (overwrite their input) do not count as readers. Channels are padded to whole
  /// SIMD registers, except for an input that the first layer reads unpadded. is_sequence: whether
  /// the output has one entry per word of a text.
  void add_edge(const Shape& s, bool is_sequence, std::size_t maker) {
    const auto& layers = l_.layers;
    std::size_t reader = maker + 1;
    const bool unpadded =
        maker == 0 && reader < layers.size() && layers[reader]->takes_unpadded_input();
    while (reader < layers.size() && layers[reader]->works_in_place()) ++reader;
    CpuEdge e;
    e.is_sequence = is_sequence;
    e.layout = {.channels = s.channels,
                .height = s.height,
                .width = s.width,
                .stride = unpadded ? s.channels : static_cast<int>(padded(s.channels)),
                .border = reader < layers.size() ? layers[reader]->input_border() : 0};
    narrow(e.layout.size());
    e.value = Storage::reserve(l_.storage.values, e.size());
    l_.edges.push_back(e);
  }

  /// Assigns offsets to the gradients with respect to activations. The gradients of the logits, and
  /// of the edges between layers from first_together on, are stored for all examples that a worker
  /// processes at once; all others only for the current example.
  void place_gradients() {
    for (std::size_t i = l_.first_together; i < sites_.size(); ++i) {
      l_.edges[sites_[i].in].keeps_gradients = true;
      l_.edges[sites_[i].out].keeps_gradients = true;
    }
    l_.edges.back().keeps_gradients = true;  // the loss writes them for all examples in flight
    for (CpuEdge& e : l_.edges)
      e.gradient = Storage::reserve(
          e.keeps_gradients ? l_.storage.kept_gradients : l_.storage.gradients, e.size());
  }

  /// Adds to l_.zeros the parts of edge e's activations that no layer writes, which must therefore
  /// be set to zero: the numbers before the first row of an image, between rows, and after the last
  /// row.
  void add_zeros(const CpuEdge& e) {
    const ImageLayout& l = e.layout;
    const auto add = [&](std::int64_t first, std::int64_t end) {
      if (end > first) l_.zeros.push_back({e.value + first, end - first});
    };
    if (e.is_sequence) return;  // no such parts: only a text's own words are read
    if (&e == &l_.edges.front() && l.stride > l.channels) return add(0, e.size());
    std::int64_t written = 0;  // floats before this are written by layers, or listed
    for (int y = 0; y < l.height; ++y) {
      add(written, l.at(y, 0));
      written = l.at(y, l.width);
    }
    add(written, e.size());
  }

  void lay_out(std::size_t i) {
    const LayerEdges& site = sites_[i];
    l_.layers[i]->lay_out({.network = l_.network,
                           .layer = i > 0 ? &l_.network->layers[i - 1] : nullptr,
                           .in = l_.edges[site.in],
                           .out = l_.edges[site.out],
                           .gives_input_gradient = site.gives_input_gradient,
                           .passes_codes = passes_codes_ && i < 2},
                          l_.storage);
  }

  CpuLayout l_;
  std::vector<LayerEdges> sites_;
  bool passes_codes_ = false;
};

}  // namespace

CpuLayout build_layout(const Network& network) { return LayoutBuilder(network).build(); }

}  // namespace cudp::cpu
