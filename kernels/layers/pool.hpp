#pragma once
#include <cstdint>

#include "kernels/common/counted_planes.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/layers/epilogue.hpp"
#include "kernels/layers/image.hpp"

namespace cudp {

/// Shapes of a max or average pool on the CPU: the layouts of its input and its output, and its
/// windows of kernel x kernel pixels, `stride` apart. There is no padding. In both layouts the
/// distance between pixels is a multiple of 16 floats.
struct PoolGeometry {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
};

/// Arguments of the forward pass of a max or average pool of one example on the CPU. It computes
/// the output y from the input x.
struct PoolForward {
  PoolGeometry geometry;
  const float* x;
  float* y;
};
/// Arguments of the backward pass of a max or average pool of one example on the CPU. It computes
/// dx, the gradient of the input, from dy, the gradient of the output. Pixels of the input in no
/// window get the gradient 0. The gradient of a maximum goes to the first pixel of its window, in
/// row order, that has this value.
struct PoolBackward {
  PoolGeometry geometry;
  const float* x;  ///< not read by average pooling
  const float* dy;
  float* dx;
};

// --- CUDA ---

namespace device {

/// Largest width of a window for which the forward pass of a max pool stores which pixel of each
/// window has the largest value. The pixel (ky, kx) is stored as one byte, ky * kernel + kx. With
/// larger windows the backward pass searches for the pixel again.
inline constexpr int kMaxArgmaxKernel = 16;
/// Returns whether the forward pass of a pool stores which pixel of each window has the largest
/// value. is_max: whether it is a max pool. kernel: width of its windows.
inline bool stores_argmax(bool is_max, int kernel) { return is_max && kernel <= kMaxArgmaxKernel; }

/// Max or average pool of a micro-batch: windows of kernel x kernel pixels, `stride` apart, no
/// padding. Forward: computes y from x. In a max pool it also stores in argmax which pixel of each
/// window has the largest value (the first in row order, if there are several). Backward: computes
/// dx from dy; in a max pool the gradient of a window goes to that pixel.
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
  /// Layout of the parts into which pool_cells() divides dx for the backward pass, one per thread.
  CountedPlanes cells = {};
  /// Index of the pixel with the largest value within each window, [capacity, pixels of y]. Null
  /// for average pools, and for windows that are too large for a one-byte index.
  std::uint8_t* argmax = nullptr;
  /// Operation on each number before it is written. The forward pass has none. If the layer before
  /// the pool is an activation, the backward pass may multiply by its derivative; epilogue.y is
  /// then x, the activation's output and the pool's input.
  Epilogue epilogue = {};
};

/// Divides dx, the gradient of a pool's input, into parts that one thread each computes, and
/// returns the layout of an image with one pixel per part. If windows do not overlap, a part is
/// stride x stride pixels, to which only one window can contribute. Otherwise a part is a single
/// pixel.
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
