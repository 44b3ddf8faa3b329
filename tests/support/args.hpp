#pragma once
#include <sstream>
#include <string>

#include "tests/support/arguments.hpp"

namespace cudp {

/// Returns the arguments in a part of a command line, split at blanks.
inline Arguments args(const std::string& line) {
  std::istringstream in(line);
  Arguments arguments;
  for (std::string word; in >> word;) arguments.push_back(word);
  return arguments;
}

}  // namespace cudp
