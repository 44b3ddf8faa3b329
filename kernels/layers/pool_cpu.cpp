#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/layers/pool.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Calls f(offset in x, offset in y) for every window and every SIMD vector of channels. g: sizes
/// of the pool and of its input x and output y. F: type of the function f.
template <class F>
CUDP_INLINE void for_each_window(const PoolGeometry& g, F f) {
  for (int y = 0; y < g.out.height; ++y)
    for (int x = 0; x < g.out.width; ++x) {
      const std::int64_t in = g.in.at(y * g.stride, x * g.stride);
      const std::int64_t out = g.out.at(y, x);
      for (int c = 0; c < g.out.stride; c += kLanes) f(in + c, out + c);
    }
}

template <class F>
CUDP_INLINE void for_each_pixel(const PoolGeometry& g, F f) {
  const std::int64_t row = g.in.row();
  for (int ky = 0; ky < g.kernel; ++ky)
    for (int kx = 0; kx < g.kernel; ++kx) f(ky * row + std::ptrdiff_t{kx} * g.in.stride);
}

CUDP_INLINE void clear(float* p, std::int64_t n) {
  __builtin_memset(p, 0, static_cast<std::size_t>(n) * sizeof(float));
}

CUDP_INLINE Vec window_max(const PoolGeometry& g, const float* x) {
  Vec m = load(x);
  for_each_pixel(g, [&](std::int64_t o) { m = max(load(x + o), m); });
  return m;
}

}  // namespace

namespace {

/// The gradient of a 2 x 2 window for each of its pixels: all of it for the first maximum in row
/// order, 0 for the others.
struct Shares {
  Vec v[2][2];
};
CUDP_INLINE Shares shares_of(const float* x, std::int64_t row, int pixel, Vec g) {
  const Vec a = load(x);
  const Vec b = load(x + pixel);
  const Vec c = load(x + row);
  const Vec d = load(x + row + pixel);
  const Vec m = max(max(d, c), max(b, a));
  const Vec zero{};
  const Vec left_b = a == m ? zero : g;
  const Vec left_c = b == m ? zero : left_b;
  const Vec left_d = c == m ? zero : left_c;
  return {{{a == m ? g : zero, b == m ? left_b : zero},
           {c == m ? left_c : zero, d == m ? left_d : zero}}};
}

/// Backward pass of max pools with 2 x 2 windows, one pixel apart. The windows of a row are
/// processed from left to right. Two neighbouring windows share a column of pixels; its gradients
/// stay in registers until both windows have added to them. So each pixel is read back once, by the
/// next row of windows, instead of three times. p: arguments of the kernel.
void max_pool_2x2_stride_1_backward(const PoolBackward& p) {
  const ImageLayout& in = p.geometry.in;
  const ImageLayout& out = p.geometry.out;
  clear(p.dx + in.at(0, 0), static_cast<std::int64_t>(in.width) * in.stride);
  for (int y = 0; y < out.height; ++y)
    for (int c = 0; c < in.stride; c += kLanes) {
      const float* x = p.x + in.at(y, 0) + c;
      const float* dy = p.dy + out.at(y, 0) + c;
      float* upper = p.dx + in.at(y, 0) + c;
      float* lower = upper + in.row();
      Vec carried_upper{};
      Vec carried_lower{};
      for (int i = 0; i < out.width; ++i) {
        const Shares s = shares_of(x, in.row(), in.stride, load(dy));
        store(upper, load(upper) + (carried_upper + s.v[0][0]));
        store(lower, carried_lower + s.v[1][0]);
        carried_upper = s.v[0][1];
        carried_lower = s.v[1][1];
        x += in.stride;
        dy += out.stride;
        upper += in.stride;
        lower += in.stride;
      }
      store(upper, load(upper) + carried_upper);
      store(lower, carried_lower);
    }
}

/// Backward pass of max pools with 2 x 2 windows that do not overlap: every covered pixel is
/// written once. p: arguments of the kernel.
void max_pool_2x2_stride_2_backward(const PoolBackward& p) {
  const ImageLayout& in = p.geometry.in;
  if (in.height % 2 != 0 || in.width % 2 != 0) clear(p.dx, in.size());
  for_each_window(p.geometry, [&](std::int64_t at, std::int64_t out) {
    const Shares s = shares_of(p.x + at, in.row(), in.stride, load(p.dy + out));
    float* dx = p.dx + at;
    store(dx, s.v[0][0]);
    store(dx + in.stride, s.v[0][1]);
    store(dx + in.row(), s.v[1][0]);
    store(dx + in.row() + in.stride, s.v[1][1]);
  });
}

}  // namespace

void max_pool_forward(const PoolForward& p) {
  const PoolGeometry& g = p.geometry;
  if (g.kernel == 2) {
    const std::int64_t row = g.in.row();
    const int pixel = g.in.stride;
    for_each_window(g, [&](std::int64_t in, std::int64_t out) {
      const float* x = p.x + in;
      store(p.y + out,
            max(max(load(x + row + pixel), load(x + row)), max(load(x + pixel), load(x))));
    });
    return;
  }
  for_each_window(
      g, [&](std::int64_t in, std::int64_t out) { store(p.y + out, window_max(g, p.x + in)); });
}

void max_pool_backward(const PoolBackward& p) {
  const PoolGeometry& geometry = p.geometry;
  if (geometry.kernel == 2 && geometry.stride == 1) return max_pool_2x2_stride_1_backward(p);
  if (geometry.kernel == 2 && geometry.stride == 2) return max_pool_2x2_stride_2_backward(p);
  clear(p.dx, geometry.in.size());
  for_each_window(geometry, [&](std::int64_t in, std::int64_t out) {
    const Vec m = window_max(geometry, p.x + in);
    Vec g = load(p.dy + out);
    for_each_pixel(geometry, [&](std::int64_t o) {
      const Vec x = load(p.x + in + o);
      float* dx = p.dx + in + o;
      store(dx, load(dx) + (x == m ? g : Vec{}));
      g = x == m ? Vec{} : g;  // later pixels with the same value get no gradient
    });
  });
}

void average_pool_forward(const PoolForward& p) {
  const Vec share = broadcast(1.0f / static_cast<float>(p.geometry.kernel * p.geometry.kernel));
  for_each_window(p.geometry, [&](std::int64_t in, std::int64_t out) {
    Vec sum{};
    for_each_pixel(p.geometry, [&](std::int64_t o) { sum += load(p.x + in + o); });
    store(p.y + out, sum * share);
  });
}

void average_pool_backward(const PoolBackward& p) {
  clear(p.dx, p.geometry.in.size());
  const Vec share = broadcast(1.0f / static_cast<float>(p.geometry.kernel * p.geometry.kernel));
  for_each_window(p.geometry, [&](std::int64_t in, std::int64_t out) {
    const Vec g = load(p.dy + out) * share;
    for_each_pixel(p.geometry, [&](std::int64_t o) {
      float* dx = p.dx + in + o;
      store(dx, load(dx) + g);
    });
  });
}

}  // namespace cudp::CUDP_SIMD
