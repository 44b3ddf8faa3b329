#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/image.cuh"
#include "kernels/layers/pool.hpp"

namespace cudp::inline CUDP_SIMT {

/// The first pixel of the window's largest, or a NaN if there is one, as an offset from the
/// window's corner `x`.
__device__ __forceinline__ int largest(const float* x, int row, int kernel) {
  int best = 0;
  for (int ky = 0; ky < kernel; ++ky)
    for (int kx = 0; kx < kernel; ++kx) {
      const float v = x[ky * row + kx];
      if (v > x[best] || v != v) best = ky * row + kx;
    }
  return best;
}

// grid, block: any, a thread an output pixel. smem: none.
__global__ inline void pool_kernel(device::Pool a) {
  const Planes& out = a.y_planes;
  for_each_pixel(a.batch, out.pixels(), [&](int e, int i) {
    const int line = i / out.width;
    const int c = line / out.height;
    const std::int64_t example = e;
    const float* const x = a.x + example * a.x_planes.size() +
                           a.x_planes.at(c, line % out.height * a.stride, i % out.width * a.stride);
    float v = 0.0f;
    if (a.is_max) {
      v = x[largest(x, a.x_planes.row(), a.kernel)];
    } else {
      for (int ky = 0; ky < a.kernel; ++ky)
        for (int kx = 0; kx < a.kernel; ++kx) v += x[ky * a.x_planes.row() + kx];
      v /= static_cast<float>(a.kernel * a.kernel);
    }
    a.y[example * out.size() + out.pixel_offset(i)] = v;
  });
}

// grid, block: any, a thread an input pixel, which asks every window over it. smem: none.
__global__ inline void pool_backward_kernel(device::Pool a) {
  const Planes& in = a.dx_planes;
  const Planes& out = a.dy_planes;
  const AnyFunction f(a.epilogue.function);
  for_each_pixel(a.batch, in.pixels(), [&](int e, int i) {
    const int line = i / in.width;
    const int c = line / in.height;
    const int y = line % in.height;
    const int x = i % in.width;
    const std::int64_t example = e;
    const float* const dy = a.dy + example * out.size();
    const auto first = [&](int at) { return at < a.kernel ? 0 : (at - a.kernel) / a.stride + 1; };
    float v = 0.0f;
    for (int oy = first(y); oy < out.height && oy * a.stride <= y; ++oy)
      for (int ox = first(x); ox < out.width && ox * a.stride <= x; ++ox) {
        const float gradient = dy[out.at(c, oy, ox)];
        if (!a.is_max) {
          v += gradient / static_cast<float>(a.kernel * a.kernel);
          continue;
        }
        const int row = a.x_planes.row();
        const float* const window =
            a.x + example * a.x_planes.size() + a.x_planes.at(c, oy * a.stride, ox * a.stride);
        const int here = (y - oy * a.stride) * row + x - ox * a.stride;
        if (largest(window, row, a.kernel) == here) v += gradient;
      }
    if (a.epilogue.kind == Epilogue::Kind::derivative)
      v *= f.derivative(a.x[example * a.x_planes.size() + a.x_planes.at(c, y, x)]);
    a.dx[example * in.size() + in.at(c, y, x)] = v;
  });
}

}  // namespace cudp::inline CUDP_SIMT
