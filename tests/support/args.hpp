#pragma once
#include <sstream>
#include <string>

#include "tests/support/words.hpp"

namespace cudp {

/// The words of a part of a command line that stand apart from each other by blanks.
inline Words args(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace cudp
