#pragma once
// What engines tell of a step.
#include <cstdint>
#include <span>

#include "runtime/device/engine.hpp"
#include "runtime/gate/witness.hpp"

namespace cudp {

/// In place of a threshold: examples drawn with probabilities of their own (importance.hpp).
inline constexpr std::uint64_t kCandidates = 0;

/// Of the sum of a step's clipped gradients, whose sensitivity is the plan's.
Leaving released_sum(std::uint64_t step, double grid, float noise_std);

/// Tells an observer which examples a step drew, ascending.
void show_batch(std::uint64_t step, std::uint64_t threshold,
                std::span<const std::uint32_t> examples);

/// scalars: as they were used. coordinates: of transformed gradients. state: afterwards.
verify::Update update_record(std::uint64_t step, const EngineSettings& settings,
                             const StepScalars& scalars, bool coordinates, const TrainState& state);

}  // namespace cudp
