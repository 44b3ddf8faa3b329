#pragma once
#include <string>

#include "runtime/base/safetensors.hpp"

namespace cudp {

/// Returns Python code that builds the network in PyTorch, loads its weights and scales an input;
/// "" if PyTorch's Sequential cannot express the model (its inputs are texts, or it transforms
/// features before the network), or if the metadata of the model's file are damaged. model: names,
/// shapes and metadata of the file.
std::string torch_code(const TensorFile& model);

}  // namespace cudp
