#pragma once
#include <sstream>
#include <string>

#include "tests/support/words.hpp"

namespace cudp {

/// Returns the words of a part of a command line, split at blanks.
inline Words args(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace cudp
