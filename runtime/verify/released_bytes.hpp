#pragma once
#include <string>
#include <vector>

#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Finds places in release/ where private rows could be hidden. Returns one line for each file that
/// contains more than the program would write for the same content: links, additional bytes,
/// comments, other spaces or number formats, parts of pictures that are not pixels. Not checked:
/// texts that the user wrote, the front matter of README.md, and the pixels of pictures.
std::vector<std::string> more_than_written(const ReleasedRun& run);

}  // namespace cudp
