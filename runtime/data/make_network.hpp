#pragma once
#include <string>

#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns the properties of the data set's texts that a network depends on (number of words, size
/// of word vectors); zeros if it has no texts.
TextShape text_shape(const Dataset& data);

/// Parses a model and builds its network (parse_model, build_network). Throws InputError.
Network make_network(const std::string& model_text, const std::string& source,
                     const std::string& activation, const Shape& input, int classes,
                     const TextShape& text = {});

}  // namespace cudp
