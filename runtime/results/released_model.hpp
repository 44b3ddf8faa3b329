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

/// A trained model as a run publishes it: the content of model.safetensors and, for texts,
/// vocabulary.txt. With these files, and the embedding's file if the model does not store it, a
/// user can compute predictions.
struct ReleasedModel {
  std::string text;        ///< layers of the network, as TOML
  std::string activation;  ///< activation function of the network
  Network network;
  std::vector<float> parameters;  ///< values of all trained parameters
  std::string dataset;            ///< name of the data set that the model was trained on
  /// Settings of the transforms that are applied to an example before it enters the network, such
  /// as a projection on principal components.
  FeatureSettings features;
  std::vector<float> feature_release;  ///< noisy statistics that the transforms of `features` use
  /// Tokenizer and vocabulary of a model of texts; null if inputs are not texts.
  std::shared_ptr<const TextCoder> coder;
  ModelInputs inputs;  ///< how inputs are computed from a table or from images
  /// Origin of the pre-trained weights from which the training started. The privacy guarantee does
  /// not cover the data that these weights were trained on. nullopt if the training started from
  /// random weights.
  std::optional<privacy::Certificate::PublicInput> initial_weights = {};
};

/// Returns the shape of an example as text for metadata and messages: "3x32x32", channels first.
std::string shape_text(const Shape& shape);

/// Returns the bytes of the model's file, model.safetensors. Tensors have the names and layouts
/// that PyTorch uses.
std::string encode_model(const ReleasedModel& model);

/// Returns the bytes that encode_model() would write for the model in `file`, which was read from
/// `path`. If the bytes at `path` differ, that file contains more than a released model of this
/// network, e.g. further metadata. Does not read the embedding. Throws InputError if `file` is not
/// the file of a released model.
std::string encode_again(const TensorFile& file, const std::filesystem::path& path,
                         const Network& network);

/// Returns the path of a released model's file. place: path of a run's folder, of its folder
/// release/, or of the file itself. Throws InputError if there is no model.
std::filesystem::path find_released_model(const std::filesystem::path& place);

/// Reads a released model from its file (model.safetensors) and, for a model of texts, from
/// vocabulary.txt in the same folder. vectors: location of the embedding, if the model does not
/// store it. Throws InputError if it is not the file of a released model, or if words or embedding
/// are missing or differ from those with which the model was trained.
ReleasedModel read_released_model(const std::filesystem::path& file, const VectorPlace& vectors);

// Functions that read parts of a released model, for code that checks files which may be wrong.

/// Returns the value, a text, of a key in the metadata of a model's file. source: name of the file,
/// for messages. Throws InputError if the key is missing.
const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source);

/// Reads from the metadata of a model's file the origin of the pre-trained weights from which the
/// training started; nullopt if there were none.
std::optional<privacy::Certificate::PublicInput> released_initial_weights(const TensorFile& file);

/// Reads from the metadata of a model's file the settings of the transform that its inputs need:
/// kind of features, number of channel groups to normalise, whether channels are standardised.
/// source: name of the file, for messages.
FeatureSettings released_features(const TensorFile& file, const std::string& source);

/// Builds the network that the metadata of a model's file describe. text: for models of
/// texts, the size of the vocabulary and the length of word vectors. source: name of the file, for
/// messages. Throws InputError if the metadata are missing or do not describe a valid network.
Network released_network(const TensorFile& file, const TextShape& text, const std::string& source);

}  // namespace cudp
