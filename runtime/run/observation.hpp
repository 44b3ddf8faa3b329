#pragma once
#include "runtime/run/run.hpp"

namespace cudp {

/// Calls begin() of the training's release observer, if it receives secrets, such as sums before
/// noise (SecretObserver; only for runs whose randomness comes from a seed); otherwise does
/// nothing. Call it before the process releases anything. The observer keeps a reference to `run`,
/// which must therefore outlive the observer and must not be moved.
void observe_beginning(const Run& run, const Training& training);

/// Gives the run's release observer (which is called for every released value) the state before the
/// first step of this process: the parameters and the optimizer's state. Does nothing unless the
/// observer receives secrets, such as sums before noise (SecretObserver; only for runs whose
/// randomness comes from a seed).
void observe_state(const Run& run);

}  // namespace cudp
