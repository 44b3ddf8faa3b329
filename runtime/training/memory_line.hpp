#pragma once
#include <string>

namespace cudp {

struct Experiment;
class Method;

/// Returns a message with the training's peak memory by this method if features are kept in a file;
/// otherwise
/// "".
/// It depends on the number of examples, which may be private.
std::string memory_line(const Experiment& e, const Method& method);

}  // namespace cudp
