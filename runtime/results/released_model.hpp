#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"
#include "runtime/features/features.hpp"
#include "runtime/results/model_inputs.hpp"
#include "runtime/results/released_text.hpp"

namespace cudp {

/// A model as a run publishes it: model.safetensors, and beside it vocabulary.txt where it is of
/// texts. Who has both, and the vectors of words where these are in a file of their own, needs
/// nothing else to ask it for predictions.
struct ReleasedModel {
  std::string text;        ///< TOML of the layers
  std::string activation;  ///< what the layers `activation` are
  Network network;
  std::vector<float> parameters;           ///< [d]
  std::string dataset;                     ///< that it was trained on
  FeatureSettings features;                ///< what it is shown of an example
  std::vector<float> feature_release;      ///< what these rest on
  std::shared_ptr<const TextCoder> coder;  ///< null: not of texts
  ModelInputs inputs;                      ///< what its inputs mean
};

/// A shape as metadata and messages have it: "3x32x32", channels first.
std::string shape_text(const Shape& shape);

/// The bytes of model.safetensors, under PyTorch's names and layouts.
std::string encode_model(const ReleasedModel& model);

/// The model's file, of a run folder, a release folder, or given itself. Throws InputError where
/// there is none.
std::filesystem::path find_released_model(const std::filesystem::path& place);

/// Reads a model.safetensors, and the words beside it. Throws InputError where it is not that of a
/// released model, or where words or vectors are missing or others.
ReleasedModel read_released_model(const std::filesystem::path& file, const VectorPlace& vectors);

// Parts of a released model, for who looks at a file that may be wrong.

/// A text of its metadata. Throws InputError where it is missing.
const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source);

/// The features that it was trained on: kind, groups, whether channels are standardised.
FeatureSettings released_features(const TensorFile& file, const std::string& source);

/// The network that the metadata describe. text: of models of texts. Throws InputError.
Network released_network(const TensorFile& file, const TextShape& text, const std::string& source);

}  // namespace cudp
