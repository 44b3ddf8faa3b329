#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "privacy/certificate/certificate.hpp"
#include "runtime/config/fine_tuning.hpp"

namespace cudp {

/// Public pre-trained weights, read from a file, with which a training starts.
struct PublicWeights {
  privacy::Certificate::PublicInput input;  ///< facts about the file, for the certificate
  std::vector<float> frozen = {};           ///< values of frozen tensors, in network order

  // Only for a new training; a resumed one has its weights in the checkpoint.
  std::vector<float> initial = {};  ///< values of trained parameters, [d]; NaN: not in the file
  /// Messages for the user about what was read, one line each.
  std::vector<std::string> notes = {};
};

/// Returns, for each layer of the network, whether --freeze freezes it, [layers]. globs: value of
/// --freeze, patterns with '*' for names of tensors or layers. Throws InputError if a pattern
/// matches nothing, if it matches some tensors of a layer only, or if no layer is left to train.
std::vector<bool> frozen_layers(const Network& network, const std::string& globs);

/// Returns the names of the parameter tensors of the selected layers. layers: for each layer of the
/// network, whether it is selected.
std::vector<std::string> tensors_of_layers(const Network& network, const std::vector<bool>& layers);

/// Reads pre-trained weights from the file settings.init, and freezes the layers of `network` that
/// settings.freeze names. Requires a network without frozen layers. Tensors are found by name;
/// weights that the file lacks will be drawn at random. If the file has two biases for an LSTM, as
/// PyTorch does, their sum is used. Throws InputError if the file has no tensor of the model, if a
/// tensor has another shape than in the model, or if a frozen tensor is missing.
PublicWeights start_from_public_weights(const FineTuning& settings, Network& network);

/// Freezes the layers of `network` that were frozen when the run started, for a run that is
/// resumed. weights: pre-trained weights, with those of frozen layers, from the run's checkpoint.
void freeze_again(const FineTuning& settings, const PublicWeights& weights, Network& network);

/// Returns the reason why a model that starts from these weights must not be released; "" if no
/// reason is known. There are two reasons: cudp trained the weights in a run that is not for
/// release; or cudp trained them on data of the name `dataset`, and no certificate is next to their
/// file. The weights may then reveal rows of this data set, and frozen layers keep them unchanged.
std::string why_not_for_release(const privacy::Certificate::PublicInput& weights,
                                const std::string& dataset);

/// Returns the SHA-256 digest of a file, hexadecimal. Throws InputError if the file cannot be read.
std::string digest_of_file(const std::string& path);
/// Returns the SHA-256 digest of the bytes of a list of numbers, hexadecimal.
std::string digest_of(const std::vector<float>& numbers);

/// Returns the folder of the cudp run that released this file of weights; "" if no run did, i.e. if
/// there is no certificate next to the file. path: path of the file.
std::string run_of_weights(const std::string& path);

}  // namespace cudp
