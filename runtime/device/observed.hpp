#pragma once
// Records of a step that engines pass to the release observer.
#include <cstdint>
#include <span>

#include "runtime/device/engine.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

/// Returns the public properties of the released sum of a step's clipped gradients. Its sensitivity
/// is not set; the plan states it.
ReleasedValue released_sum(std::uint64_t step, double grid, float noise_std);

/// Passes the examples that a step drew, in ascending order, to an observer that may receive
/// secrets. Does nothing otherwise.
void show_batch(ReleaseObserver* release_observer, std::uint64_t step, const Draw& draw,
                std::span<const std::uint32_t> examples);

/// Returns the record of an optimizer's step. scalars: those used in the step. state: the state
/// after it.
transcript::Update update_record(std::uint64_t step, const StepRecipe& recipe,
                                 const StepScalars& scalars, const TrainState& state);

}  // namespace cudp
