#pragma once
#include "kernels/layers/image.hpp"

namespace cudp {

/// Windows of kernel x kernel pixels, `stride` apart, no padding; strides of both layouts multiples
/// of 16.
struct PoolGeometry {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
};

/// Forward: y from x. Backward: dx (cleared first) from x and dy; a maximum's gradient goes to the
/// first pixel of its window, in row order, that holds it.
struct PoolForward {
  PoolGeometry geometry;
  const float* x;
  float* y;
};
struct PoolBackward {
  PoolGeometry geometry;
  const float* x;  ///< not read by average pooling
  const float* dy;
  float* dx;
};

}  // namespace cudp
