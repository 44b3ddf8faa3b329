#pragma once
#include "kernels/random/random.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/run/experiment.hpp"

namespace cudp {

/// Weights, and the start of what the optimizer and the method keep beside them.
TrainState initial_state(const Experiment& experiment, const RandomKey& key);

}  // namespace cudp
