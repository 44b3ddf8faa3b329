#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/epilogue.hpp"

namespace cudp::inline CUDP_SIMT {

/// Calls store(finish) once. finish(v, y) returns the number to write for a layer's number v; y()
/// must return the value of the activation there.
template <class Store>
__device__ __forceinline__ void store_finished(const Epilogue& epilogue, const Store& store) {
  const Precision as = epilogue.stored_as;
  if (epilogue.kind == Epilogue::Kind::none) {
    store([&](float v, const auto&) { return stored(v, as); });
    return;
  }
  const AnyFunction f(epilogue.function);
  if (epilogue.kind == Epilogue::Kind::value)
    store([&](float v, const auto&) { return stored(f.value(v), as); });
  else
    store([&](float v, const auto& y) { return stored(v * f.derivative(y()), as); });
}

}  // namespace cudp::inline CUDP_SIMT
