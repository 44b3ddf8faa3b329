#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// Calls SecretObserver::begin (runtime/gate/release_observer.hpp) when a process starts or resumes
/// this run, before the first release. The observer keeps a reference to the run, so the run must
/// not be moved or destroyed while the observer is used.
void observe_beginning(const Run& run, const Training& training);

/// Passes the state from which the run's first step starts to the observer.
void observe_state(const Run& run);

}  // namespace cudp
