#pragma once
#include <cmath>

namespace cudp {

/// Returns the smallest e with x <= 2^e. Requires x finite and > 0.
inline int ceil_log2(double x) {
  int e = 0;
  return std::frexp(x, &e) == 0.5 ? e - 1 : e;
}

}  // namespace cudp
