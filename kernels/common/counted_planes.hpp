#pragma once
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Channel, row and column of a pixel in an example's activations.
struct Pixel {
  int channel, y, x;
};

/// Planes (one example's activations) that can convert the index of a pixel to its coordinates
/// without a division.
struct CountedPlanes : Planes {
  AnyDivisor by_width;
  AnyDivisor by_height;

  CountedPlanes() = default;
  CountedPlanes(const Planes& p) : Planes(p), by_width(p.width), by_height(p.height) {}

  /// Coordinates of the n-th pixel, borders not counted.
  CUDP_HD Pixel pixel(int n) const {
    const int line = quotient(n, by_width);
    const int channel = quotient(line, by_height);
    return {channel, line - channel * height, n - line * width};
  }
  using Planes::at;
  CUDP_HD int at(const Pixel& p) const { return at(p.channel, p.y, p.x); }
  CUDP_HD int pixel_offset(int n) const { return border == 0 ? n : at(pixel(n)); }
};

/// Returns whether a and b have the same pixels, whatever their borders.
inline bool same_pixels(const Planes& a, const Planes& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

}  // namespace cudp
