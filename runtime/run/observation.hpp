#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// If the training has a SecretObserver (runtime/gate/release_observer.hpp), calls its begin().
/// Call before the first release of this process. The observer keeps a reference to the run, which
/// must outlive it and must not be moved.
void observe_beginning(const Run& run, const Training& training);

/// If the run has a SecretObserver, passes it the parameters and optimizer state from which the
/// first step of this process starts.
void observe_state(const Run& run);

}  // namespace cudp
