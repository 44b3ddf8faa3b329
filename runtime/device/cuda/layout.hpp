#pragma once
// A network laid out for the CUDA engine: its layers, the planes between them, and the tables by
// which they find their numbers.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "models/model.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/layers/activation.hpp"
#include "runtime/device/cuda/layers/conv2d.hpp"
#include "runtime/device/cuda/layers/dense.hpp"
#include "runtime/device/cuda/layers/embedding.hpp"
#include "runtime/device/cuda/layers/group_norm.hpp"
#include "runtime/device/cuda/layers/image.hpp"
#include "runtime/device/cuda/layers/mean_over_time.hpp"
#include "runtime/device/cuda/layers/pool.hpp"
#include "runtime/device/cuda/layers/recurrent.hpp"
#include "runtime/device/cuda/layers/token_dense.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The layers: one name here and a file in layers/ for each. It takes the alternative that is made
/// of a network's layer.
using AnyCudaLayer =
    std::variant<CudaInput, CudaConv2d, CudaDense, CudaPool, CudaGroupNorm, CudaActivation,
                 CudaEmbedding, CudaTokenDense, CudaRecurrent, CudaMeanOverTime>;

template <class L>
AnyCudaLayer make_layer(const L& layer) {
  if constexpr (std::is_same_v<L, Dense>)
    if (layer.per_token) return CudaTokenDense(layer);
  if constexpr (std::is_same_v<L, Dense>)
    return CudaDense(layer);
  else
    return layer;
}

struct CudaLayout {
  std::vector<CudaEdge> edges;       ///< the last has the logits
  std::vector<AnyCudaLayer> layers;  ///< the input, then the network's
  CudaStorage storage;
  Precision loss_gradient_as = Precision::fp32;  ///< as what the loss is to store its gradient

  /// A micro-batch is a multiple of this many examples.
  int example_group() const {
    static_assert(kSlab % kExampleGroup == 0);
    return storage.uses_blas ? kSlab : kExampleGroup;
  }
  /// Floats that one example in flight takes.
  std::int64_t floats_per_example(int groups, int outputs) const {
    std::int64_t floats = storage.saved + storage.example_gradients + storage.parts() + outputs + 2;
    floats += 2 * std::int64_t{groups} + storage.library_scratch;
    for (const CudaEdge& e : edges)
      floats += e.value.size() + (e.has_gradient ? e.gradient.size() : 0);
    return floats;
  }
};

/// The base of whatever layer it is.
inline CudaLayer& base(AnyCudaLayer& layer) {
  return std::visit([](auto& l) -> CudaLayer& { return l; }, layer);
}
inline const CudaLayer& base(const AnyCudaLayer& layer) {
  return std::visit([](const auto& l) -> const CudaLayer& { return l; }, layer);
}

/// Activations that work in place become epilogues of the layers beside them, where those can have
/// one. network_layers[i] is layers[i + 1].
inline void fold_activations(std::vector<AnyCudaLayer>& layers,
                             const std::vector<NetworkLayer>& network_layers,
                             const std::vector<bool>& in_place, const LayoutChoices& choices) {
  for (std::size_t i = 1; i < layers.size(); ++i) {
    auto* const activation = std::get_if<CudaActivation>(&layers[i]);
    if (activation == nullptr || !in_place[i]) continue;
    if (i > 1 &&
        base(layers[i - 1])
            .takes_output_function(network_layers[i - 2], choices, activation->function())) {
      base(layers[i - 1]).take_output_function(activation->function());
      activation->leave_forward();
    }
    if (i + 1 < layers.size() &&
        base(layers[i + 1]).takes_input_function(network_layers[i], choices)) {
      base(layers[i + 1]).take_input_function(activation->function());
      activation->leave_backward();
    }
  }
}

/// The place of a layer among the edges.
struct LayerPosition {
  std::size_t in, out;
  bool gives_input_gradient;
  Precision output_as = Precision::fp32;
  Precision input_gradient_as = Precision::fp32;
};

/// Values and gradients that tensor cores are to multiply are rounded by the layer that writes them
/// last, where it can: an edge's `as` and that layer's say so. Otherwise whoever reads them rounds
/// them, as often as he does. positions[i], layers[i]: network_layers[i - 1]'s.
inline void round_edges(CudaLayout& layout, const std::vector<NetworkLayer>& network_layers,
                        std::vector<LayerPosition>& positions, const LayoutChoices& choices) {
  const auto asked = [&](std::size_t i, auto&& question) {
    return (base(layout.layers[i]).*question)(network_layers[i - 1], choices);
  };
  for (std::size_t edge = 0; edge < layout.edges.size(); ++edge) {
    bool reads_value = false;
    bool reads_gradient = false;
    Precision* value_writer = nullptr;
    Precision* gradient_writer =
        edge + 1 == layout.edges.size() ? &layout.loss_gradient_as : nullptr;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      LayerPosition& at = positions[i];
      if (i > 0 && asked(i, &CudaLayer::reads_rounded)) {
        reads_value = reads_value || at.in == edge;
        reads_gradient = reads_gradient || at.out == edge;
      }
      if (at.out == edge && base(layout.layers[i]).writes_output())
        value_writer = i == 0 || asked(i, &CudaLayer::rounds_output) ? &at.output_as : nullptr;
    }
    for (std::size_t i = positions.size(); i-- > 1;) {
      LayerPosition& at = positions[i];
      if (at.in == edge && at.gives_input_gradient &&
          base(layout.layers[i]).writes_input_gradient())
        gradient_writer =
            asked(i, &CudaLayer::rounds_input_gradient) ? &at.input_gradient_as : nullptr;
    }
    if (reads_value && value_writer != nullptr)
      *value_writer = layout.edges[edge].value_as = Precision::tf32;
    if (reads_gradient && gradient_writer != nullptr)
      *gradient_writer = layout.edges[edge].gradient_as = Precision::tf32;
  }
}

/// Keeps pointers into `network`. Throws Error where 32-bit offsets do not reach.
inline CudaLayout build_layout(const Network& network, const LayoutChoices& choices = {}) {
  CudaLayout layout;
  std::vector<LayerPosition> positions;
  // A sequence lies place by place; texts themselves are read where they are.
  const auto add_edge = [&](const Shape& s, bool is_sequence) {
    const Planes p =
        is_sequence ? Planes{1, s.width, s.channels, 0} : Planes{s.channels, s.height, s.width, 0};
    layout.edges.push_back(
        {.number = layout.edges.size(), .value = p, .gradient = p, .has_gradient = false});
  };
  add_edge(network.text.words > 0 ? Shape{} : network.input, false);
  layout.layers.emplace_back(CudaInput());
  positions.push_back({.in = 0, .out = 0, .gives_input_gradient = false});
  bool has_parameters_before = false;
  for (const NetworkLayer& l : network.layers) {
    AnyCudaLayer any = std::visit([](const auto& of) { return make_layer(of); }, l.layer);
    CudaLayer& layer = base(any);
    LayerPosition at{
        .in = layout.edges.size() - 1, .out = 0, .gives_input_gradient = has_parameters_before};
    has_parameters_before = has_parameters_before || l.has_parameters();
    // In place, unless the value before is still needed by the layer before.
    if (!layer.works_in_place() || base(layout.layers.back()).reads_own_output())
      add_edge(l.out, l.out_sequence);
    at.out = layout.edges.size() - 1;
    CudaEdge& in = layout.edges[at.in];
    CudaEdge& out = layout.edges[at.out];
    out.has_gradient = out.has_gradient || has_parameters_before;
    in.value.border = std::max(in.value.border, layer.input_border());
    if (at.gives_input_gradient)
      out.gradient.border = std::max(out.gradient.border, layer.gradient_border(l));
    positions.push_back(at);
    layout.layers.push_back(std::move(any));
  }
  std::vector<bool> in_place;
  for (const LayerPosition& at : positions) in_place.push_back(at.in == at.out);
  fold_activations(layout.layers, network.layers, in_place, choices);
  round_edges(layout, network.layers, positions, choices);
  for (std::size_t i = 0; i < positions.size(); ++i)
    base(layout.layers[i])
        .lay_out({.network = &network,
                  .layer = i > 0 ? &network.layers[i - 1] : nullptr,
                  .in = layout.edges[positions[i].in],
                  .out = layout.edges[positions[i].out],
                  .gives_input_gradient = positions[i].gives_input_gradient,
                  .output_as = positions[i].output_as,
                  .input_gradient_as = positions[i].input_gradient_as},
                 choices, layout.storage);
  return layout;
}

}  // namespace cudp::cuda::inline CUDP_SIMT
