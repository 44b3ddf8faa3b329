#pragma once
#include <optional>

namespace cudp {

/// Returns the value that engines write to their scratch memory (activations, gradients, norms,
/// factors) before every example or micro-batch; empty, as in the program, to write nothing. For
/// tests: the result of an example must not depend on what an earlier example left in this memory,
/// so no bit of a result may depend on this value.
std::optional<float> scratch_fill();
/// Sets the value that scratch_fill() returns. Must not be called while an engine runs.
void set_scratch_fill(std::optional<float> value);

}  // namespace cudp
