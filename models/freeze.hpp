#pragma once
#include <span>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Returns the network with some layers frozen: their tensors become constants that are not
/// trained. Their values move from the vector of parameters to Network::frozen_values, so that no
/// gradient, norm, noise or update includes them. frozen: for each layer, whether to freeze it;
/// must be false for layers without parameters. parameters: values of all parameters of `network`,
/// [d]. Throws std::invalid_argument if a layer of `network` is frozen already, or if no layer with
/// parameters would remain trained.
Network freeze(const Network& network, const std::vector<bool>& frozen,
               std::span<const float> parameters);

/// Returns the network with no layer frozen.
Network unfrozen(const Network& network);

/// Returns the parameters of the network as if no layer were frozen. trained: the values of the
/// trained layers' parameters, [d], with d their number; those of frozen layers are in the network.
std::vector<float> whole_parameters(const Network& network, std::span<const float> trained);

/// Returns the number of parameters of the network, those of frozen layers included.
std::size_t count_of_all_parameters(const Network& network);

/// Returns whether a trained layer has a learning rate of its own: a factor lr_scale other
/// than 1.
bool has_own_rates(const Network& network);

/// Returns for each of the d trained parameters the factor (lr_scale of its layer) by which its
/// learning rate is multiplied, [d]. The result is empty if all factors are 1.
std::vector<float> own_rates(const Network& network);

}  // namespace cudp
