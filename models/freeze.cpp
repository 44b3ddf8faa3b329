#include "models/freeze.hpp"

#include <algorithm>
#include <stdexcept>

namespace cudp {

Network freeze(const Network& network, const std::vector<bool>& frozen,
               std::span<const float> parameters) {
  if (!network.frozen.empty() || frozen.size() != network.layers.size() ||
      parameters.size() != network.parameter_count)
    throw std::invalid_argument("freeze: expected a whole network, its layers and parameters");
  Network out = network;
  out.parameters.clear();
  out.parameter_count = 0;
  out.groups = 0;
  std::vector<float> values;
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    NetworkLayer& l = out.layers[i];
    if (l.parameter_count == 0) continue;
    const std::size_t first = l.first_parameter;
    l.frozen = frozen[i];
    l.group = l.frozen ? -1 : out.groups++;
    l.first_parameter = l.frozen ? out.frozen.size() : out.parameters.size();
    for (std::size_t t = first; t < first + l.parameter_count; ++t) {
      ParameterTensor tensor = network.parameters[t];
      const auto from = parameters.subspan(tensor.offset, tensor.size);
      tensor.group = l.group;
      tensor.offset = l.frozen ? values.size() : out.parameter_count;
      if (l.frozen) {
        values.insert(values.end(), from.begin(), from.end());
        out.frozen.push_back(std::move(tensor));
      } else {
        out.parameter_count += tensor.size;
        out.parameters.push_back(std::move(tensor));
      }
    }
  }
  if (out.groups == 0) throw std::invalid_argument("freeze: every layer is frozen");
  if (out.frozen.empty()) return out;
  for (ParameterTensor& t : out.frozen) t.offset += out.parameter_count;
  out.frozen_values = std::make_shared<const std::vector<float>>(std::move(values));
  return out;
}

Network unfrozen(const Network& network) {
  if (network.frozen.empty()) return network;
  return build_network(network.spec, network.input, network.classes, network.text);
}

std::vector<float> whole_parameters(const Network& network, std::span<const float> trained) {
  if (trained.size() != network.parameter_count)
    throw std::invalid_argument("whole_parameters: expected the parameters that are trained");
  std::vector<float> all;
  for (const NetworkLayer& l : network.layers)
    for (std::size_t i = 0; i < l.parameter_count; ++i) {
      const ParameterTensor& t = network.tensor(l, i);
      const std::span<const float> from =
          l.frozen ? std::span<const float>(*network.frozen_values)
                         .subspan(t.offset - network.parameter_count, t.size)
                   : trained.subspan(t.offset, t.size);
      all.insert(all.end(), from.begin(), from.end());
    }
  return all;
}

std::size_t count_of_all_parameters(const Network& network) {
  return network.parameter_count + (network.frozen_values ? network.frozen_values->size() : 0);
}

bool has_own_rates(const Network& network) {
  return std::ranges::any_of(network.parameters,
                             [](const ParameterTensor& t) { return t.lr_scale != 1.0f; });
}

std::vector<float> own_rates(const Network& network) {
  if (!has_own_rates(network)) return {};
  std::vector<float> all(network.parameter_count);
  for (const ParameterTensor& t : network.parameters)
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(t.offset), t.size, t.lr_scale);
  return all;
}

}  // namespace cudp
