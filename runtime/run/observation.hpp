#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// Refuses a run for release where an observer waits for secrets (runtime/gate/witness.hpp): throws
/// InputError unless the config has a seed. It is to be called before anything is done.
void check_observation(const TrainConfig& config);

/// Tells an observer that a process begins or goes on with this run, before its first release. It
/// sees the run as long as that lives, which must stay where it is.
void observe_beginning(Run& run, const Training& training);

/// Tells an observer what the run's first step starts from.
void observe_state(const Run& run);

}  // namespace cudp
