#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// Tells an observer (runtime/gate/witness.hpp) that a process begins or goes on with this run,
/// before its first release. It sees the run as long as that lives, which must stay where it is.
void observe_beginning(const Run& run, const Training& training);

/// Tells an observer what the run's first step starts from.
void observe_state(const Run& run);

}  // namespace cudp
