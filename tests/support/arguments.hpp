#pragma once
#include <string>
#include <vector>

namespace cudp {

/// Arguments of a command line, or of a part of one.
using Arguments = std::vector<std::string>;

/// Returns `a` followed by `b`.
inline Arguments with(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace cudp
