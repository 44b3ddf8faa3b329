#include "runtime/methods/initial_weights.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "runtime/base/random_numbers.hpp"
#include "runtime/methods/orthogonal_matrix.hpp"

namespace cudp {
namespace {

bool uses(const Network& network, Activation kind) {
  return std::ranges::any_of(network.layers, [&](const NetworkLayer& l) {
    const auto* a = std::get_if<Activate>(&l.layer);
    return a != nullptr && a->kind == kind;
  });
}

/// Returns whether the network is a linear model: a single layer has parameters, and that layer is
/// dense or a convolution.
bool is_linear(const Network& network) {
  return network.groups == 1 && std::ranges::any_of(network.layers, [](const NetworkLayer& l) {
           return l.has_parameters() && (std::holds_alternative<Dense>(l.layer) ||
                                         std::holds_alternative<Conv2d>(l.layer));
         });
}

/// Draws the initial weights of one layer. Requires that the layer's parameters in `weights` are 0.
class LayerInitialiser {
 public:
  LayerInitialiser(const Network& network, Generator generator, const RandomKey& key,
                   const WordVectors* vectors, std::vector<float>& weights)
      : network_(network),
        generator_(generator),
        key_(key),
        vectors_(vectors),
        weights_(weights),
        words_(random_words({generator, key, Stream::initial_weights, 0}, weights.size())),
        relu_(uses(network, Activation::relu)),
        linear_(is_linear(network)) {}

  void operator()(const NetworkLayer& l) const {
    if (!l.has_parameters()) return;
    std::visit([&](const auto& kind) { start(kind, l); }, l.layer);
  }

 private:
  const ParameterTensor& tensor(const NetworkLayer& l, std::size_t i) const {
    return network_.parameters[l.first_parameter + i];
  }
  void fill(const ParameterTensor& t, std::size_t first, std::size_t count, float value) const {
    std::fill_n(weights_.begin() + static_cast<std::ptrdiff_t>(t.offset + first), count, value);
  }

  /// Fills a tensor with uniform numbers in (-limit, limit).
  void uniform(const ParameterTensor& t, double limit) const {
    for (std::size_t j = t.offset; j < t.offset + t.size; ++j) {
      const double u = (words_[j] + 0.5) * 0x1p-31 - 1.0;  // range (-1, 1)
      weights_[j] = static_cast<float>(limit * u);
    }
  }
  static double glorot(const ParameterTensor& t) { return std::sqrt(6.0 / (t.fan_in + t.fan_out)); }
  static double he(const ParameterTensor& t) { return std::sqrt(6.0 / t.fan_in); }

  template <class L>
  void start(const L&, const NetworkLayer& l) const {
    const ParameterTensor& t = tensor(l, 0);
    if (!linear_) uniform(t, relu_ ? he(t) : glorot(t));
  }

  void start(const GroupNorm&, const NetworkLayer& l) const {
    const ParameterTensor& t = tensor(l, 0);
    fill(t, 0, t.size, 1.0f);
  }

  void start(const Embedding&, const NetworkLayer& l) const {
    const ParameterTensor& t = tensor(l, 0);
    if (vectors_ != nullptr && vectors_->columns == t.shape[1])
      std::copy_n(vectors_->values.begin(), t.size,
                  weights_.begin() + static_cast<std::ptrdiff_t>(t.offset));
    else
      uniform(t, glorot(t));
  }

  void start(const Recurrent& r, const NetworkLayer& l) const {
    const std::size_t each = l.parameter_count / static_cast<std::size_t>(r.directions());
    const auto hidden = static_cast<std::size_t>(r.hidden);
    for (std::size_t first = 0; first < l.parameter_count; first += each) {
      uniform(tensor(l, first), glorot(tensor(l, first)));
      orthogonal(tensor(l, first + 1));
      // The bias of an LSTM has a part for each gate, in the order i, f, g, o. The forget gate's
      // part, f, is set to 1.
      if (r.cell == Cell::lstm) fill(tensor(l, first + 2), hidden, hidden, 1.0f);
    }
  }

  void orthogonal(const ParameterTensor& t) const {
    const std::vector<float> z =
        normal_numbers({generator_, key_, Stream::initial_weights, 1}, t.offset + t.size);
    std::vector<double> q(z.end() - static_cast<std::ptrdiff_t>(t.size), z.end());
    make_orthogonal(q, t.shape[0], t.shape[1]);
    std::ranges::transform(q, weights_.begin() + static_cast<std::ptrdiff_t>(t.offset),
                           [](double x) { return static_cast<float>(x); });
  }

  const Network& network_;
  Generator generator_;
  const RandomKey& key_;
  const WordVectors* vectors_;
  std::vector<float>& weights_;
  std::vector<std::uint32_t> words_;
  bool relu_;
  bool linear_;
};

}  // namespace

std::vector<float> initial_weights(const Network& network, Generator generator,
                                   const RandomKey& key, const WordVectors* vectors) {
  std::vector<float> weights(network.parameter_count, 0.0f);
  const LayerInitialiser initialise(network, generator, key, vectors, weights);
  for (const NetworkLayer& layer : network.layers) initialise(layer);
  return weights;
}

}  // namespace cudp
