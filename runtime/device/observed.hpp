#pragma once
// Reports of engines about a step.
#include <cstdint>
#include <span>

#include "runtime/device/engine.hpp"
#include "runtime/gate/witness.hpp"

namespace cudp {

/// The properties of the sum of a step's clipped gradients, whose sensitivity is the plan's.
Leaving released_sum(std::uint64_t step, double grid, float noise_std);

/// Tells an observer which examples a step drew, ascending.
void show_batch(Witness* witness, std::uint64_t step, const Draw& draw,
                std::span<const std::uint32_t> examples);

/// scalars: as they were used. state: afterwards.
transcript::Update update_record(std::uint64_t step, const StepRecipe& recipe,
                                 const StepScalars& scalars, const TrainState& state);

}  // namespace cudp
