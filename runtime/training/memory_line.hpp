#pragma once
#include <string>

namespace cudp {

struct Experiment;
class Method;

/// Returns a message with the peak memory of a training with this method; "" unless features are
/// kept in a file instead of memory. The message depends on the number of examples, which may be
/// private.
std::string memory_line(const Experiment& e, const Method& method);

}  // namespace cudp
