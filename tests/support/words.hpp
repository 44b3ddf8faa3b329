#pragma once
#include <string>
#include <vector>

namespace cudp {

/// Words of a command line, or of a part of one.
using Words = std::vector<std::string>;

/// Returns the words of `a` followed by those of `b`.
inline Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace cudp
