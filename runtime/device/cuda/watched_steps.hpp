#pragma once
#include <span>

#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Runs steps one by one, without a CUDA graph, so that a release observer
/// (runtime/gate/release_observer.hpp) receives the released values of each. cursor: the number of
/// the first step, and the values that are the same for all. steps: the scalars of each step.
void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps);

}  // namespace cudp::cuda::inline CUDP_SIMT
