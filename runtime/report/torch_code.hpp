#pragma once
#include <string>

#include "runtime/base/safetensors.hpp"

namespace cudp {

/// Returns Python code that builds the network in PyTorch, loads its weights and scales an input;
/// "" if the network is not a plain chain of layers there (texts, features before the network) or
/// if its metadata are damaged.
std::string torch_code(const TensorFile& model);

}  // namespace cudp
