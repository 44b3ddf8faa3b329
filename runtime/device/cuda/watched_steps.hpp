#pragma once
#include <span>

#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Makes steps one launch after the other for a release observer
/// (runtime/gate/release_observer.hpp), who takes what leaves in between. cursor: as
/// RecordedSteps::run has it.
void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps);

}  // namespace cudp::cuda::inline CUDP_SIMT
