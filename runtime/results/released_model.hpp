#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "privacy/certificate/certificate.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"
#include "runtime/features/features.hpp"
#include "runtime/results/model_inputs.hpp"
#include "runtime/results/released_text.hpp"

namespace cudp {

/// Model as a run publishes it: model.safetensors and, for models of texts, vocabulary.txt. With
/// these files, and the vectors of words if they are in a file of their own, a user can compute
/// predictions.
struct ReleasedModel {
  std::string text;        ///< layers as TOML
  std::string activation;  ///< function of the layers `activation`
  Network network;
  std::vector<float> parameters;           ///< [d]
  std::string dataset;                     ///< name of the data set that it was trained on
  FeatureSettings features;                ///< transforms from an example to the network's input
  std::vector<float> feature_release;      ///< released numbers that the transforms use
  std::shared_ptr<const TextCoder> coder;  ///< null unless it is a model of texts
  ModelInputs inputs;                      ///< meaning of its inputs
  /// Weights that its training began with, and that no guarantee covers; nullopt: none.
  std::optional<privacy::Certificate::PublicInput> initial_weights = {};
};

/// Returns a shape as in metadata and messages: "3x32x32", channels first.
std::string shape_text(const Shape& shape);

/// Returns the bytes of model.safetensors, with PyTorch's names and layouts.
std::string encode_model(const ReleasedModel& model);

/// Returns the path of the model's file. place: a run folder, a release folder or the file itself.
/// Throws InputError if there is none.
std::filesystem::path find_released_model(const std::filesystem::path& place);

/// Reads a model.safetensors, and the words in the same folder. Throws InputError if it is not the
/// file of a released model, or if words or vectors are missing or differ from those it was trained
/// with.
ReleasedModel read_released_model(const std::filesystem::path& file, const VectorPlace& vectors);

// Functions that read parts of a released model, for code that checks files which may be wrong.

/// Returns a text of the metadata. Throws InputError if it is missing.
const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source);

/// Returns the weights that its training began with, if they were a file's.
std::optional<privacy::Certificate::PublicInput> released_initial_weights(const TensorFile& file);

/// Returns the settings of the features that it was trained on: kind, groups, whether channels are
/// standardised.
FeatureSettings released_features(const TensorFile& file, const std::string& source);

/// Returns the network that the metadata describe. text: shape of the words, for models of texts.
/// Throws InputError.
Network released_network(const TensorFile& file, const TextShape& text, const std::string& source);

}  // namespace cudp
