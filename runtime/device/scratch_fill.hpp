#pragma once
#include <optional>

namespace cudp {

/// The value that engines put into their scratch memory (activations, gradients, norms, factors)
/// before every example or micro-batch, or nothing, as in the program. For tests: what an example
/// computes may not depend on what an earlier example left there, so no bit of a result may depend
/// on this.
std::optional<float> scratch_fill();
/// To be called while no engine runs.
void set_scratch_fill(std::optional<float> value);

}  // namespace cudp
