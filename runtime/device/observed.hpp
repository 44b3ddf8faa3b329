#pragma once
// Records of a step that engines pass to the release observer.
#include <cstdint>
#include <span>

#include "runtime/device/engine.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

/// Returns the public description of a step's released sum of clipped gradients: step, grid, noise.
/// Its sensitivity is not set; the privacy plan states it. grid: the sum is an integer multiple of
/// it.
ReleasedValue released_sum(std::uint64_t step, double grid, float noise_std);

/// Passes the examples that a step drew, in ascending order, to an observer that may receive
/// secrets. Does nothing otherwise.
void show_batch(ReleaseObserver* release_observer, std::uint64_t step, const Draw& draw,
                std::span<const std::uint32_t> examples);

/// Returns a record of an optimizer's update, for the release observer. scalars: learning rate,
/// noise etc. of the step. state: parameters and optimizer state after it.
transcript::Update update_record(std::uint64_t step, const StepRecipe& recipe,
                                 const StepScalars& scalars, const TrainState& state);

}  // namespace cudp
