#pragma once
#include <vector>

#include "kernels/random/random.hpp"
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns the parameters from which training starts, [d], where d is their number.
/// - Biases are 0, but 1 for the forget gate of an LSTM. Scales of a group norm are 1.
/// - Weights of a linear network are 0, so that training starts at the symmetric point of a convex
///   loss.
/// - Other weights are uniform in (-a, a), with a = sqrt(6 / fan_in) (He et al. 2015) in networks
///   with relu, and a = sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010) in others and for the
///   inputs of a recurrent layer.
/// - State weights of a recurrent layer, [gates hidden, hidden], have orthonormal columns.
/// - An embedding's vectors are the first rows of `vectors` (public pre-trained vectors; may be
///   null) if these have as many columns, else uniform with norm 1 on average.
///
/// Parameter j is made from word j of the key's random stream for initial weights, step 0, or, if
/// it needs a normal number, from normal number j of step 1.
std::vector<float> initial_weights(const Network& network, Generator generator,
                                   const RandomKey& key, const WordVectors* vectors = nullptr);

}  // namespace cudp
