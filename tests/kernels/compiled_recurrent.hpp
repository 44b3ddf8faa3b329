#pragma once
// The fused kernels of texts that the CUDA engine contains (runtime/device/cuda/fused.cu). Tests
// call these, in place of compiling them again.
#include "kernels/fused/recurrent_kernel.cuh"

namespace cudp::fused::inline CUDP_SIMT {

extern template __global__ void recurrent_kernel<TextPlan<ImdbRnn, false>>(FusedSum);
extern template __global__ void recurrent_kernel<TextPlan<ImdbRnn, true>>(FusedSum);
extern template __global__ void recurrent_kernel<TextPlan<ImdbGru, false>>(FusedSum);
extern template __global__ void recurrent_kernel<TextPlan<ImdbGru, true>>(FusedSum);
extern template __global__ void recurrent_kernel<TextPlan<ImdbOneWay, false>>(FusedSum);
extern template __global__ void recurrent_kernel<TextPlan<ImdbOneWay, true>>(FusedSum);

}  // namespace cudp::fused::inline CUDP_SIMT
