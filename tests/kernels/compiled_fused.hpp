#pragma once
// The fused kernels that the CUDA engine contains (runtime/device/cuda/fused.cu) and tests call, in
// place of compiling them again.
#include "kernels/fused/fused_kernel.cuh"

namespace cudp::fused::inline CUDP_SIMT {

#define CUDP_COMPILED_FUSED(...) \
  extern template __global__ void fused_kernel<Plan<__VA_ARGS__>>(FusedSum)

CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::bytes, 1, false);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::bytes, 2, false);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::bytes, 4, false);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::bytes, 1, true);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::bytes, 4, true);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::numbers, 1, false);
CUDP_COMPILED_FUSED(Cnn, Split::forward, Input::numbers, 2, false);
CUDP_COMPILED_FUSED(Cnn, Split::all, Input::numbers, 1, false);
CUDP_COMPILED_FUSED(Cnn, Split::all, Input::numbers, 2, false);
CUDP_COMPILED_FUSED(ScatterCnn, Split::forward, Input::numbers, 1, false);
CUDP_COMPILED_FUSED(ScatterCnn, Split::forward, Input::numbers, 2, false);
CUDP_COMPILED_FUSED(ScatterCnn, Split::all, Input::numbers, 1, false);

#undef CUDP_COMPILED_FUSED

}  // namespace cudp::fused::inline CUDP_SIMT
