#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/epilogue.hpp"

namespace cudp::inline CUDP_SIMT {

/// Calls store(finish) once, where finish(v, y) is what is to be written for the layer's number v;
/// y() gives the function's value there.
template <class Store>
__device__ __forceinline__ void store_finished(const Epilogue& epilogue, const Store& store) {
  if (epilogue.kind == Epilogue::Kind::none) {
    store([](float v, const auto&) { return v; });
    return;
  }
  const AnyFunction f(epilogue.function);
  if (epilogue.kind == Epilogue::Kind::value)
    store([&](float v, const auto&) { return f.value(v); });
  else
    store([&](float v, const auto& y) { return v * f.derivative(y()); });
}

}  // namespace cudp::inline CUDP_SIMT
