#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// If the run has a SecretObserver, calls its begin() (runtime/gate/release_observer.hpp), before
/// the first release of this process. The observer keeps a reference to the run, so the run must
/// not be moved or destroyed while the observer is used.
void observe_beginning(const Run& run, const Training& training);

/// If the run has a SecretObserver, passes it the state from which the first step of this process
/// starts.
void observe_state(const Run& run);

}  // namespace cudp
