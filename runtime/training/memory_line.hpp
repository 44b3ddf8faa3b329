#pragma once
#include <string>

namespace cudp {

struct Experiment;

/// Returns a line with the memory that a training takes at its peak, if features stay in a file;
/// otherwise "". It depends on the number of examples, which may be private.
std::string memory_line(const Experiment& e);

}  // namespace cudp
