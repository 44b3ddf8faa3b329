#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Operation that a layer's kernel applies to its outputs before it writes them, so that an
/// adjacent activation needs no pass of its own. `value` applies the activation: in the forward
/// pass, if it follows the layer. `derivative` multiplies by the activation's derivative, computed
/// from its values y: in the backward pass, if it precedes the layer.
struct Epilogue {
  enum class Kind { none, value, derivative };
  Kind kind = Kind::none;
  Activate function = {};
  /// The activation's values, for `derivative`; the layer defines their layout.
  const float* y = nullptr;
  Precision stored_as = Precision::fp32;  ///< tf32: written numbers are rounded for tensor cores
};

inline void validate(const Epilogue& e) {
  expect((e.kind == Epilogue::Kind::derivative) == (e.y != nullptr),
         "epilogue: expected values y with a derivative, and only with it");
}

}  // namespace cudp
