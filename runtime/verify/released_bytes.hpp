#pragma once
#include <string>
#include <vector>

#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Returns a line for each file of release/ that holds more than the program writes from its
/// content: a link, further bytes, comments, other spelling, parts of pictures that are not pixels.
/// So that no row hides where no reader looks. Texts that the user wrote, the front matter of
/// README.md and the pixels of pictures are not bounded.
std::vector<std::string> more_than_written(const ReleasedRun& run);

}  // namespace cudp
