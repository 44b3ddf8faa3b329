#pragma once
#include <string>

namespace cudp {

struct Experiment;
class Method;

/// Returns a message with the peak memory of a training by this method, or "" if no features are
/// kept in a file. It depends on the number of examples, which may be private.
std::string memory_line(const Experiment& e, const Method& method);

}  // namespace cudp
