#pragma once
#include <string>

namespace cudp {

struct Experiment;
class Method;

/// If features are kept in a file, returns a message with the peak memory of a training with this
/// method; "" if they are in memory. The message depends on the number of examples, which may be
/// private.
std::string memory_line(const Experiment& e, const Method& method);

}  // namespace cudp
