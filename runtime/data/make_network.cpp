#include "runtime/data/make_network.hpp"

#include <stdexcept>

#include "runtime/base/error.hpp"

namespace cudp {

TextShape text_shape(const Dataset& data) {
  return {.words = data.words, .columns = data.vectors != nullptr ? data.vectors->columns : 0};
}

Network make_network(const std::string& model_text, const std::string& source,
                     const std::string& activation, const Shape& input, int classes,
                     const TextShape& text) {
  try {
    return build_network(parse_model(model_text, source, classes, activation), input, classes,
                         text);
  } catch (const std::invalid_argument& e) {
    throw InputError(e.what());
  }
}

}  // namespace cudp
