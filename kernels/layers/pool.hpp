#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/layers/epilogue.hpp"
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

// --- CUDA ---

namespace device {

/// Windows of kernel x kernel pixels, `stride` apart, no padding. Forward: y from x. Backward: dx
/// from dy; a maximum's gradient goes to the first pixel of its window, in row order, that holds
/// it. Average pooling reads x backward for an epilogue alone.
struct Pool {
  Batch batch;
  bool is_max;
  int kernel;
  int stride;
  const float* x;
  Planes x_planes;
  float* y = nullptr;  ///< forward only
  Planes y_planes = {};
  const float* dy = nullptr;  ///< backward only, as dx
  Planes dy_planes = {};
  float* dx = nullptr;
  Planes dx_planes = {};
  Epilogue epilogue = {};  ///< backward: none, or the derivative of the function that gave x, y = x
};

inline void validate(const Pool& a) {
  validate(a.batch);
  validate(a.epilogue);
  const bool forward = a.dy == nullptr;
  expect(a.epilogue.y == (a.epilogue.kind == Epilogue::Kind::none ? nullptr : a.x) &&
             (a.epilogue.y == nullptr || !forward),
         "pool: expected no epilogue, or backward the derivative at x");
  expect(a.kernel > 0 && a.stride > 0, "pool: expected kernel and stride > 0");
  expect(forward ? a.x != nullptr && a.y != nullptr : a.dx != nullptr, "pool: expected pointers");
  const Planes& in = forward ? a.x_planes : a.dx_planes;
  const Planes& out = forward ? a.y_planes : a.dy_planes;
  expect(out.channels == in.channels && out.height == (in.height - a.kernel) / a.stride + 1 &&
             out.width == (in.width - a.kernel) / a.stride + 1,
         "pool: expected shapes that fit");
}

inline LaunchShape launch_shape(const Pool& a) {
  const Planes& to = a.dy == nullptr ? a.y_planes : a.dx_planes;
  return strided_shape(std::int64_t{a.batch.capacity} * to.pixels());
}

}  // namespace device

}  // namespace cudp
