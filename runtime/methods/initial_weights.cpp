#include "runtime/methods/initial_weights.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "runtime/base/random_numbers.hpp"

namespace cudp {
namespace {

bool uses(const Network& network, Activation kind) {
  return std::ranges::any_of(network.layers, [&](const NetworkLayer& l) {
    const auto* a = std::get_if<Activate>(&l.layer);
    return a != nullptr && a->kind == kind;
  });
}

/// Half-width of the uniform distribution that a weight tensor starts from.
double limit(const ParameterTensor& t, bool relu) {
  return std::sqrt(6.0 / (relu ? t.fan_in : t.fan_in + t.fan_out));
}

}  // namespace

std::vector<float> initial_weights(const Network& network, Generator generator,
                                   const RandomKey& key) {
  std::vector<float> weights(network.parameter_count, 0.0f);
  const bool linear = network.groups == 1;
  const bool relu = uses(network, Activation::relu);
  const auto words =
      random_words({generator, key, Stream::initial_weights, 0}, network.parameter_count);
  for (const NetworkLayer& layer : network.layers) {
    if (!layer.has_parameters()) continue;
    const ParameterTensor& t = network.parameters[layer.first_parameter];
    const bool scale = std::holds_alternative<GroupNorm>(layer.layer);
    for (std::size_t j = t.offset; j < t.offset + t.size; ++j) {
      const double uniform = (words[j] + 0.5) * 0x1p-31 - 1.0;  // in (-1, 1)
      weights[j] = scale ? 1.0f : linear ? 0.0f : static_cast<float>(limit(t, relu) * uniform);
    }
  }
  return weights;
}

}  // namespace cudp
