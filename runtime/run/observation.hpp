#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// If the training has an observer that receives secrets, such as sums before noise
/// (SecretObserver; only for runs whose randomness comes from a seed), calls the observer's
/// function begin(). Call this before the process releases anything. The observer keeps a reference
/// to `run`, which must therefore outlive the observer and must not be moved.
void observe_beginning(const Run& run, const Training& training);

/// If the run has an observer that receives secrets, such as sums before noise (SecretObserver;
/// only for runs whose randomness comes from a seed), passes to it the parameters and the optimizer
/// state from which the first step of this process starts.
void observe_state(const Run& run);

}  // namespace cudp
