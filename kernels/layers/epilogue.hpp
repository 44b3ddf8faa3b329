#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// What becomes of a layer's numbers before they are written, so that an activation beside it needs
/// no pass of its own: `value`, the function of them, forward where the activation is behind the
/// layer; `derivative`, they times the function's derivative, found from its values y, backward
/// where it is before.
struct Epilogue {
  enum class Kind { none, value, derivative };
  Kind kind = Kind::none;
  Activate function = {};
  const float* y = nullptr;               ///< of derivative; where they lie is the layer's to say
  Precision stored_as = Precision::fp32;  ///< tf32: what is written is rounded for tensor cores
};

inline void validate(const Epilogue& e) {
  expect((e.kind == Epilogue::Kind::derivative) == (e.y != nullptr),
         "epilogue: expected a function's values with its derivative alone");
}

}  // namespace cudp
