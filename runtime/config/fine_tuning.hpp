#pragma once
#include <string>

namespace cudp {

/// Settings of a training that starts from public pre-trained weights.
struct FineTuning {
  std::string init;  ///< path of a .safetensors file; empty: initial weights are random
  /// Tensors that are not trained: globs of names of tensors or layers, separated by commas; empty:
  /// none.
  std::string freeze;
};

}  // namespace cudp
