#pragma once
#include <string>

#include "runtime/cli/answer.hpp"

namespace cudp {

/// A run's certificate in sentences: what is promised, what that means, how it was made, what was
/// released, and what the promise does not cover. run: as read_run_certificate has it. Throws
/// InputError.
Answer explained(const std::string& run);

}  // namespace cudp
