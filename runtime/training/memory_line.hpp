#pragma once
#include <string>

namespace cudp {

struct Experiment;

/// Returns a message with the training's peak memory if features are kept in a file; otherwise "".
/// It depends on the number of examples, which may be private.
std::string memory_line(const Experiment& e);

}  // namespace cudp
