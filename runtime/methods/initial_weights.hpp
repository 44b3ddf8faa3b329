#pragma once
#include <vector>

#include "kernels/random/random.hpp"
#include "models/model.hpp"

namespace cudp {

/// Where training starts, [d]. Biases 0, group-norm scales 1. Weights: zeros where the network is
/// linear, so that training is convex from the symmetric point; else uniform, with He et al. 2015's
/// limit sqrt(6 / fan_in) in networks of relu, Glorot & Bengio 2010's sqrt(6 / (fan_in + fan_out))
/// in all others. Parameter j is made from word j of the key's stream of initial weights.
std::vector<float> initial_weights(const Network& network, Generator generator,
                                   const RandomKey& key);

}  // namespace cudp
