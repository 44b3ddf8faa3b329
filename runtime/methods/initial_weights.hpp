#pragma once
#include <vector>

#include "kernels/random/random.hpp"
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// The parameters that training starts from, [d]. Biases 0, but 1 for an LSTM's forget gate;
/// group-norm scales 1. Weights: zeros where the network is linear, so that training is convex from
/// the symmetric point; else uniform, with He et al. 2015's limit sqrt(6 / fan_in) in networks of
/// relu, Glorot & Bengio 2010's sqrt(6 / (fan_in + fan_out)) in all others and for a recurrent
/// layer's inputs. Its states' weights [gates hidden, hidden] have orthonormal columns. Words'
/// vectors: the first of `vectors` (public; null for none) where those have as many columns, else
/// uniform, of norm 1 on average. Parameter j is made from word j of the key's stream of initial
/// weights, step 0, or where normal numbers are taken from normal number j of step 1.
std::vector<float> initial_weights(const Network& network, Generator generator,
                                   const RandomKey& key, const WordVectors* vectors = nullptr);

}  // namespace cudp
