#include "runtime/run/released_model.hpp"

#include <cstdio>
#include <cstdlib>

#include "runtime/base/error.hpp"
#include "runtime/run/prepare.hpp"
#include "runtime/settings/options.hpp"

namespace cudp {
namespace {

Shape parse_shape(const std::string& text, const std::string& source) {
  Shape s;
  char end = 0;
  if (std::sscanf(text.c_str(), "%dx%dx%d%c", &s.channels, &s.height, &s.width, &end) != 3)
    throw InputError(source + ", input: expected CxHxW, found '" + text + "'");
  return s;
}

}  // namespace

const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source) {
  const auto it = file.metadata.find(key);
  if (it == file.metadata.end())
    throw InputError(source + ": expected a model made by cudp, found no '" + key + "' in it");
  return it->second;
}

FeatureSettings released_features(const TensorFile& file, const std::string& source) {
  if (!file.metadata.contains("features")) return {};
  TrainConfig stored;
  for (const char* key : {"features", "feature-groups", "feature-standardise"}) {
    const Option& option = *find_option(key);
    const std::string place = std::string(source).append(", ").append(key);
    option.set(stored, parse_value(option, released_text(file, key, source), place), place);
  }
  return feature_settings(stored);
}

Network released_network(const TensorFile& file, const TextShape& text, const std::string& source) {
  return make_network(released_text(file, "model", source), source,
                      released_text(file, "activation", source),
                      parse_shape(released_text(file, "input", source), source),
                      std::atoi(released_text(file, "classes", source).c_str()), text);
}

}  // namespace cudp
