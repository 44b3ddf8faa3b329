#pragma once
#include <string>

#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns the properties of the data set's texts that a network depends on (number of words, size
/// of word vectors); zeros if it has no texts.
TextShape text_shape(const Dataset& data);

/// Parses a model, a TOML text with a list of layers, and builds its network for inputs of the
/// shape `input`. Throws InputError if the model is not valid or does not fit the input.
/// model_text: the model. source: name of the model in messages. activation: activation function
/// for the layers that leave it open; if empty, the model's own. text: properties of texts, if
/// inputs are texts.
Network make_network(const std::string& model_text, const std::string& source,
                     const std::string& activation, const Shape& input, int classes,
                     const TextShape& text = {});

}  // namespace cudp
