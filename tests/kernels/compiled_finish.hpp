#pragma once
// The kernels that finish a step, of every optimizer, which the CUDA engine contains
// (runtime/device/cuda/step.cu). Tests call these, in place of compiling them again.
#include "kernels/step/finish.cuh"

namespace cudp::inline CUDP_SIMT {

#define CUDP_COMPILED_FINISH(kind)                                                       \
  extern template __global__ void finish_kernel<OptimizerKind::kind>(FinishStep);        \
  extern template __global__ void finish_slabs_kernel<OptimizerKind::kind>(FinishStep);  \
  extern template __global__ void finish_pairs_kernel<OptimizerKind::kind>(FinishPairs); \
  extern template __global__ void update_kernel<OptimizerKind::kind>(                    \
      UpdateArgs, const StepScalars*, AdaptStepSize)

CUDP_COMPILED_FINISH(sgd);
CUDP_COMPILED_FINISH(momentum);
CUDP_COMPILED_FINISH(nesterov);
CUDP_COMPILED_FINISH(adam);
CUDP_COMPILED_FINISH(adamw);

#undef CUDP_COMPILED_FINISH

}  // namespace cudp::inline CUDP_SIMT
