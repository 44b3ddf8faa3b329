#pragma once
#include <span>

#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Runs steps one by one, without recordings, so that a release observer
/// (runtime/gate/release_observer.hpp) can read the released values of each. cursor: has the values
/// that are the same for all steps, and the number of the first step.
void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps);

}  // namespace cudp::cuda::inline CUDP_SIMT
