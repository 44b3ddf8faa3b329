#pragma once
#include <filesystem>
#include <string>

#include "models/model.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/features/features.hpp"

namespace cudp {

/// A text of a released model's metadata. Throws InputError where it is missing.
const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source);

/// What a released model was shown of an example: kind, groups, whether channels are standardised.
FeatureSettings released_features(const TensorFile& file, const std::string& source);

/// The network that the metadata describe. text: of models of texts. Throws InputError.
Network released_network(const TensorFile& file, const TextShape& text, const std::string& source);

}  // namespace cudp
