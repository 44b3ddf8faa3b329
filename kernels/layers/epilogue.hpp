#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Operation that a layer's kernel applies to each number before it writes it, so that an
/// activation next to the layer needs no kernel of its own. Kind::value, in the forward pass:
/// applies the activation that follows the layer. Kind::derivative, in the backward pass:
/// multiplies by the derivative of the activation that precedes the layer, which is computed from
/// that activation's output y.
struct Epilogue {
  enum class Kind { none, value, derivative };
  Kind kind = Kind::none;
  Activate function = {};
  /// Output of the activation, for Kind::derivative; null otherwise. The layer's kernel defines the
  /// layout.
  const float* y = nullptr;
  Precision stored_as = Precision::fp32;  ///< tf32: written numbers are rounded for tensor cores
};

inline void validate(const Epilogue& e) {
  expect((e.kind == Epilogue::Kind::derivative) == (e.y != nullptr),
         "epilogue: expected values y with a derivative, and only with it");
}

}  // namespace cudp
