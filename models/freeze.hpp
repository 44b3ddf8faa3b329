#pragma once
#include <span>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Returns the network with some layers frozen: their tensors become constants and move from
/// `parameters` to `frozen`, so that no gradient, norm, noise or update includes them. frozen:
/// [layers], whether to freeze each layer; false for layers without parameters. parameters: of the
/// whole network, [d]. Requires that no layer of `network` is frozen, and leaves at least one layer
/// with parameters that is not. Throws std::invalid_argument if not.
Network freeze(const Network& network, const std::vector<bool>& frozen,
               std::span<const float> parameters);

/// Returns the network with no layer frozen.
Network unfrozen(const Network& network);

/// Returns the parameters of the unfrozen network: `trained`, [d], and the frozen values.
std::vector<float> whole_parameters(const Network& network, std::span<const float> trained);

/// Returns the number of parameters of the unfrozen network.
std::size_t count_of_all_parameters(const Network& network);

/// Returns whether a layer of the network has a learning rate of its own (lr_scale other than 1).
bool has_own_rates(const Network& network);

/// Returns the factor of each parameter's learning rate, [d]; empty if all are 1.
std::vector<float> own_rates(const Network& network);

}  // namespace cudp
