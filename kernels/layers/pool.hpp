#pragma once
#include <cstdint>

#include "kernels/common/counted_planes.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/layers/epilogue.hpp"
#include "kernels/layers/image.hpp"

namespace cudp {

/// Shapes of a pool on the CPU: windows of kernel x kernel pixels, `stride` apart, no padding. The
/// channel strides of both layouts are multiples of 16.
struct PoolGeometry {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
};

/// Arguments of a max or average pool of one example on the CPU. Forward: computes y from x.
/// Backward: computes dx (cleared first) from x and dy. The gradient of a maximum goes to the first
/// pixel of its window, in row order, that has this value.
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

// --- CUDA ---

namespace device {

/// Largest side of a window for which the forward pass stores the maximum's pixel, ky kernel + kx,
/// in a byte. For larger windows the backward pass searches for the maximum again.
inline constexpr int kMaxArgmaxKernel = 16;
inline bool stores_argmax(bool is_max, int kernel) { return is_max && kernel <= kMaxArgmaxKernel; }

/// Pool of a micro-batch: windows of kernel x kernel pixels, `stride` apart, no padding. Forward:
/// computes y from x, and for each maximum the first pixel of its window, in row order, that has
/// this value. Backward: computes dx from dy; the gradient of a maximum goes to that pixel.
struct Pool {
  Batch batch;
  bool is_max;
  AnyDivisor kernel;
  AnyDivisor stride;
  const float* x = nullptr;  ///< backward: read for the epilogue, and to search for maxima
  CountedPlanes x_planes;
  float* y = nullptr;  ///< output, written by the forward pass
  CountedPlanes y_planes = {};
  const float* dy = nullptr;  ///< gradient of the output, for the backward pass
  CountedPlanes dy_planes = {};
  float* dx = nullptr;
  CountedPlanes dx_planes = {};
  /// backward: parts of dx, from pool_cells(); one thread computes each.
  CountedPlanes cells = {};
  /// [capacity, pixels of y], index of the maximum in its window, if stores_argmax().
  std::uint8_t* argmax = nullptr;
  /// Operation on each number before it is written. Forward: Kind::none. Backward: Kind::none or,
  /// if an activation precedes the pool, multiplication by its derivative, with epilogue.y = x.
  Epilogue epilogue = {};
};

/// Returns the parts that dx is divided into, each computed by one thread, as pixels of an image.
/// If windows do not overlap, a part is a cell of stride x stride pixels, which only the window at
/// its corner can reach. Otherwise it is a pixel.
inline Planes pool_cells(const Planes& dx, int kernel, int stride) {
  const int side = kernel <= stride ? stride : 1;
  return {.channels = dx.channels,
          .height = (dx.height + side - 1) / side,
          .width = (dx.width + side - 1) / side};
}

inline void validate(const Pool& a) {
  validate(a.batch);
  validate(a.epilogue);
  const bool forward = a.dy == nullptr;
  expect(a.epilogue.y == (a.epilogue.kind == Epilogue::Kind::none ? nullptr : a.x) &&
             (a.epilogue.kind == Epilogue::Kind::none || !forward),
         "pool: expected no epilogue, or backward the derivative at x");
  expect(a.kernel.n > 0 && a.stride.n > 0, "pool: expected kernel and stride > 0");
  expect(forward ? a.x != nullptr && a.y != nullptr : a.dx != nullptr, "pool: expected pointers");
  const bool stores = stores_argmax(a.is_max, a.kernel.n);
  expect(stores == (a.argmax != nullptr) && (forward || stores || !a.is_max || a.x != nullptr),
         "pool: expected `argmax` for the maxima's pixels, or x to search for them");
  const Planes& in = forward ? a.x_planes : a.dx_planes;
  const Planes& out = forward ? a.y_planes : a.dy_planes;
  expect(out.channels == in.channels && out.height == (in.height - a.kernel.n) / a.stride.n + 1 &&
             out.width == (in.width - a.kernel.n) / a.stride.n + 1,
         "pool: expected an output size that follows from the kernel and stride");
  expect(forward || same_pixels(a.cells, pool_cells(a.dx_planes, a.kernel.n, a.stride.n)),
         "pool: expected cells of dx");
}

inline LaunchShape launch_shape(const Pool& a) {
  return pixel_shape(a.batch, a.dy == nullptr ? a.y_planes.pixels() : a.cells.pixels());
}

}  // namespace device

}  // namespace cudp
