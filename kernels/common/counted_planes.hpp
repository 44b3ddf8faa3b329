#pragma once
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Channel, row and column of one number in an example's activations.
struct Pixel {
  int channel, y, x;
};

/// Layout of one example's activations (Planes) that also converts the index of a pixel to its
/// channel, row and column. It does so without divisions, which are slow on a GPU: the inverses of
/// width and height are computed once.
struct CountedPlanes : Planes {
  AnyDivisor by_width;
  AnyDivisor by_height;

  CountedPlanes() = default;
  CountedPlanes(const Planes& p) : Planes(p), by_width(p.width), by_height(p.height) {}

  /// Returns channel, row and column of the n-th pixel. Pixels are counted channel by channel, row
  /// by row; those of the zero border around each channel are not counted.
  CUDP_HD Pixel pixel(int n) const {
    const int line = quotient(n, by_width);
    const int channel = quotient(line, by_height);
    return {channel, line - channel * height, n - line * width};
  }
  using Planes::at;
  CUDP_HD int at(const Pixel& p) const { return at(p.channel, p.y, p.x); }
  CUDP_HD int pixel_offset(int n) const { return border == 0 ? n : at(pixel(n)); }
};

/// Returns whether a and b have the same number of channels, height and width. The widths of their
/// zero borders may differ.
inline bool same_pixels(const Planes& a, const Planes& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

}  // namespace cudp
