#pragma once
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/pool.hpp"

namespace cudp::inline CUDP_SIMT {

/// Largest value in a pool's window (NaN if the window contains one), and the index within the
/// window, in row order, of the first pixel that has this value.
struct Largest {
  float value;
  int pixel;

  /// Finds the largest value of a window. x: the window's first pixel. row: distance between rows
  /// of x [floats]. kernel: number of rows, and of columns, of the window.
  __device__ __forceinline__ Largest(const float* x, int row, int kernel) : value(x[0]), pixel(0) {
    int at = 0;
    CUDP_UNROLL_BY(1)
    for (int ky = 0; ky < kernel; ++ky) {
      CUDP_UNROLL_BY(1)
      for (int kx = 0; kx < kernel; ++kx, ++at) {
        const float v = x[ky * row + kx];
        if (!(v > value || v != v)) continue;
        value = v;
        pixel = at;
      }
    }
  }
};

// Forward pass of a pool. grid: output pixels, examples. block: any. smem: none.
__global__ inline void pool_kernel(device::Pool a) {
  const CountedPlanes& out = a.y_planes;
  const int pixels = out.pixels();
  const int kernel = a.kernel.n;
  const float inverse = 1.0f / static_cast<float>(kernel * kernel);
  for_each_pixel(a.batch, pixels, [&](int e, int i) {
    const Pixel to = out.pixel(i);
    const std::int64_t example = e;
    const float* const x = a.x + example * a.x_planes.size() +
                           a.x_planes.at(to.channel, to.y * a.stride.n, to.x * a.stride.n);
    float v = 0.0f;
    if (a.is_max) {
      const Largest largest(x, a.x_planes.row(), kernel);
      v = largest.value;
      if (a.argmax != nullptr)
        a.argmax[example * pixels + i] = static_cast<std::uint8_t>(largest.pixel);
    } else {
      CUDP_UNROLL_BY(1)
      for (int ky = 0; ky < kernel; ++ky)
        for (int kx = 0; kx < kernel; ++kx) v += x[ky * a.x_planes.row() + kx];
      v *= inverse;
    }
    a.y[example * out.size() + out.at(to)] = stored(v, a.epilogue.stored_as);
  });
}

/// Returns which pixel of a window in a max pool has the largest value: the index within the
/// window, in row order, of the first such pixel. (oy, ox): output pixel of the window, in channel
/// `channel` of example `example`. a: arguments of the kernel.
__device__ __forceinline__ int argmax_of(const device::Pool& a, std::int64_t example, int channel,
                                         int oy, int ox) {
  const CountedPlanes& out = a.dy_planes;
  if (a.argmax != nullptr) {
    const int window = (channel * out.height + oy) * out.width + ox;
    return a.argmax[example * out.pixels() + window];
  }
  const float* const x =
      a.x + example * a.x_planes.size() + a.x_planes.at(channel, oy * a.stride.n, ox * a.stride.n);
  return Largest(x, a.x_planes.row(), a.kernel.n).pixel;
}

/// Returns the gradient of input pixel `at`: the sum, over all windows that contain the pixel, of
/// the part of the window's gradient that the pixel receives. inverse: 1 / (number of pixels of a
/// window), the part that each pixel receives in an average pool.
__device__ __forceinline__ float gradient_of_pixel(const device::Pool& a, std::int64_t example,
                                                   const Pixel& at, float inverse) {
  const CountedPlanes& out = a.dy_planes;
  const int kernel = a.kernel.n;
  const int stride = a.stride.n;
  // Index along an axis of the first and the last window that contain pixel i.
  const auto first = [&](int i) { return i < kernel ? 0 : quotient(i - kernel, a.stride) + 1; };
  const auto last = [&](int i, int count) {
    const int window = quotient(i, a.stride);
    return window < count ? window : count - 1;
  };
  const float* const dy = a.dy + example * out.size();
  float v = 0.0f;
  for (int oy = first(at.y); oy <= last(at.y, out.height); ++oy)
    for (int ox = first(at.x); ox <= last(at.x, out.width); ++ox) {
      const float gradient = dy[out.at(at.channel, oy, ox)];
      if (!a.is_max)
        v += gradient * inverse;
      else if (argmax_of(a, example, at.channel, oy, ox) ==
               (at.y - oy * stride) * kernel + at.x - ox * stride)
        v += gradient;
    }
  return v;
}

// Backward pass of a pool. grid: parts of dx (pool_cells), examples. block: any. smem: none.
__global__ inline void pool_backward_kernel(device::Pool a) {
  const CountedPlanes& in = a.dx_planes;
  const CountedPlanes& out = a.dy_planes;
  const int kernel = a.kernel.n;
  const int stride = a.stride.n;
  const float inverse = 1.0f / static_cast<float>(kernel * kernel);
  const AnyFunction f(a.epilogue.function);
  const bool has_function = a.epilogue.kind == Epilogue::Kind::derivative;
  for_each_pixel(a.batch, a.cells.pixels(), [&](int e, int i) {
    const Pixel cell = a.cells.pixel(i);
    const std::int64_t example = e;
    float* const dx = a.dx + example * in.size();
    const float* const x = a.x + example * a.x_planes.size();
    if (kernel > stride) {
      float v = gradient_of_pixel(a, example, cell, inverse);
      if (has_function) v *= f.derivative(x[a.x_planes.at(cell)]);
      dx[in.at(cell)] = stored(v, a.epilogue.stored_as);
      return;
    }
    float gradient = 0.0f;
    int wins = -1;
    const bool has_window = cell.y < out.height && cell.x < out.width;
    if (has_window) gradient = a.dy[example * out.size() + out.at(cell)];
    if (has_window && a.is_max) wins = argmax_of(a, example, cell.channel, cell.y, cell.x);
    if (!a.is_max) gradient *= inverse;
    const int y0 = cell.y * stride;
    const int x0 = cell.x * stride;
    float* to = dx + in.at(cell.channel, y0, x0);
    const float* y_of = x + a.x_planes.at(cell.channel, y0, x0);
    const int rows = in.height - y0 < stride ? in.height - y0 : stride;
    const int columns = in.width - x0 < stride ? in.width - x0 : stride;
    CUDP_UNROLL_BY(1)
    for (int ky = 0; ky < rows; ++ky) {
      CUDP_UNROLL_BY(1)
      for (int kx = 0; kx < columns; ++kx) {
        const bool inside = ky < kernel && kx < kernel;
        const bool takes = a.is_max ? wins == ky * kernel + kx : true;
        float v = inside && takes ? gradient : 0.0f;
        if (has_function) v *= f.derivative(y_of[kx]);
        to[kx] = stored(v, a.epilogue.stored_as);
      }
      to += in.row();
      y_of += a.x_planes.row();
    }
  });
}

}  // namespace cudp::inline CUDP_SIMT
