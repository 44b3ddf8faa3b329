#pragma once
#include <string>
#include <vector>

namespace cudp {

/// A command line, or a part of one, word by word.
using Words = std::vector<std::string>;

/// The words of `a`, and behind them those of `b`.
inline Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace cudp
