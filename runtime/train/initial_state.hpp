#pragma once
#include "kernels/random.hpp"
#include "runtime/engine.hpp"
#include "runtime/train/experiment.hpp"

namespace cudp {

/// Weights, and the start of what the optimizer and the method keep beside them.
TrainState initial_state(const Experiment& experiment, const RandomKey& key);

}  // namespace cudp
