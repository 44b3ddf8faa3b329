#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/epilogue.hpp"

namespace cudp::inline CUDP_SIMT {

/// Calls store(finish) once, with a function `finish` that applies the epilogue: finish(v, y)
/// returns the number that the layer's kernel must write for a number v that the layer has
/// computed. y(): returns the output of the neighbouring activation for the same element; called
/// only if the epilogue multiplies by the activation's derivative. Store: type of the function
/// store().
/// values, derivatives: whether the kernel has epilogues of these kinds.
template <bool values = true, bool derivatives = true, class Store>
__device__ __forceinline__ void store_finished(const Epilogue& epilogue, const Store& store) {
  const Precision as = epilogue.stored_as;
  if (epilogue.kind == Epilogue::Kind::none) {
    store([&](float v, const auto&) { return stored(v, as); });
    return;
  }
  const AnyFunction f(epilogue.function);
  const bool is_value = epilogue.kind == Epilogue::Kind::value;
  if constexpr (values)
    if (is_value) store([&](float v, const auto&) { return stored(f.value(v), as); });
  if constexpr (derivatives)
    if (!is_value) store([&](float v, const auto& y) { return stored(v * f.derivative(y()), as); });
}

}  // namespace cudp::inline CUDP_SIMT
