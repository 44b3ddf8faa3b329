#pragma once
#include <optional>

namespace cudp {

/// Returns a value with which engines overwrite their scratch memory (activations, gradients,
/// norms, factors) before every example or micro-batch; empty outside of tests, so that they
/// overwrite nothing. A test checks that no bit of a result depends on the value: the result for an
/// example must not depend on what an earlier example left in memory.
std::optional<float> scratch_fill();
/// Sets the value that scratch_fill() returns. Must not be called while an engine runs.
void set_scratch_fill(std::optional<float> value);

}  // namespace cudp
