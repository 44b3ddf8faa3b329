#pragma once
#include <span>

#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Runs steps launch by launch for a release observer (runtime/gate/release_observer.hpp), which
/// reads the released values in between. cursor: see RecordedSteps::run.
void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps);

}  // namespace cudp::cuda::inline CUDP_SIMT
