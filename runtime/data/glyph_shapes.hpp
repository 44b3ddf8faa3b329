#pragma once
#include <span>

namespace cudp {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

/// One movement of the pen through `points`, smooth (Catmull-Rom) or in straight lines.
struct PenStroke {
  std::span<const Point> points;
  bool smooth = false;
};

/// Returns the strokes of a digit, 0 to 9, in the box -1..1 (x to the right, y down).
std::span<const PenStroke> digit_strokes(int digit);

}  // namespace cudp
