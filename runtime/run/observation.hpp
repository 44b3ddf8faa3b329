#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// Tells an observer (runtime/gate/release_observer.hpp) that a process starts or resumes this run,
/// before the first release. The observer keeps a reference to the run, so the run must not be
/// moved or destroyed while the observer is used.
void observe_beginning(const Run& run, const Training& training);

/// Shows an observer the state from which the run's first step starts.
void observe_state(const Run& run);

}  // namespace cudp
