#pragma once
#include <span>

#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Runs steps one by one, without a CUDA graph. After each step, the engine's release observer (an
/// object that receives every released value) receives the values that the step has released.
/// cursor: the number of the first step, and the values that are the same for all steps. steps: the
/// scalars of each step.
void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps);

}  // namespace cudp::cuda::inline CUDP_SIMT
