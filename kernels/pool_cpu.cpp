#include "kernels/pool.hpp"

#include "kernels/cpu_ops.hpp"
#include "kernels/vec.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Calls f(offset in x, offset in y) for every window and every vector of channels.
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
    for (int kx = 0; kx < g.kernel; ++kx) f(ky * row + kx * g.in.stride);
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

void max_pool_forward(const PoolForward& p) {
  for_each_window(p.geometry, [&](std::int64_t in, std::int64_t out) {
    store(p.y + out, window_max(p.geometry, p.x + in));
  });
}

void max_pool_backward(const PoolBackward& p) {
  clear(p.dx, p.geometry.in.size());
  for_each_window(p.geometry, [&](std::int64_t in, std::int64_t out) {
    const Vec m = window_max(p.geometry, p.x + in);
    Vec g = load(p.dy + out);
    for_each_pixel(p.geometry, [&](std::int64_t o) {
      const Vec x = load(p.x + in + o);
      float* dx = p.dx + in + o;
      store(dx, load(dx) + (x == m ? g : Vec{}));
      g = x == m ? Vec{} : g;  // given away: later equals get nothing
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
