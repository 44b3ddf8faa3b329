#pragma once
// Records of a step that engines pass to the release observer.
#include <cstdint>
#include <span>

#include "runtime/device/engine.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

/// Returns the public description of the sum that a step releases: number of the step, grid (the
/// power of two of which the sum is an integer multiple) and standard deviation of the noise. Its
/// sensitivity is not set here.
ReleasedValue released_sum(std::uint64_t step, double grid, float noise_std);

/// Passes the indices of the examples that a step drew, ascending, to the release observer, if
/// there is one and it may receive secrets. Otherwise does nothing. draw: how the step drew them.
void show_batch(ReleaseObserver* release_observer, std::uint64_t step, const Draw& draw,
                std::span<const std::uint32_t> examples);

/// Returns a record of an optimizer's update of the parameters, to pass to a release observer.
/// scalars: learning rate, noise etc. of the step. state: parameters and optimizer state after the
/// update.
transcript::Update update_record(std::uint64_t step, const StepRecipe& recipe,
                                 const StepScalars& scalars, const TrainState& state);

}  // namespace cudp
