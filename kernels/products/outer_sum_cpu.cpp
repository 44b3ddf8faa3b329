#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/products/cpu_tiles.hpp"
#include "kernels/products/outer_sum.hpp"

namespace cudp::CUDP_SIMD {
namespace {

// Shapes of tiles of the output, as in gather_gemm_cpu.cpp, except that kToUnits needs one more
// register.
#if defined(__AVX512F__)
constexpr TileShape kShapes[] = {{4, 6}, {2, 12}, {1, 12}};
#elif defined(__AVX2__)
constexpr TileShape kShapes[] = {{2, 5}};
#else
constexpr TileShape kShapes[] = {{2, 4}};
#endif

// Sums are computed modulo 2^32. Each addition also adds kToUnitsBits. The total of these constants
// is subtracted at the start of a sum; sums may wrap around in between.
CUDP_INLINE VecU load_units(const std::int32_t* p) {
  VecU v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
CUDP_INLINE void store_units(std::int32_t* p, VecU v) { __builtin_memcpy(p, &v, sizeof v); }
CUDP_INLINE VecU bits(Vec v) { return (VecU)v; }

template <int R, int V>
void tile(const AddOuter& a, int first, int column) {
  VecU acc[R][V];
  const float* row[R];
  const std::uint32_t offset =
      static_cast<std::uint32_t>(a.terms) * static_cast<std::uint32_t>(kToUnitsBits);
  std::int32_t* const units = a.units + static_cast<std::int64_t>(first) * a.columns + column;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    row[r] = a.x + a.x_row[first + r];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      acc[r][v] = load_units(units + static_cast<std::int64_t>(r) * a.columns +
                             std::ptrdiff_t{v} * kLanes) -
                  offset;
  }
  const Vec to_units = broadcast(kToUnits);
  for (int t = 0; t < a.terms; ++t) {
    const std::int64_t at = a.step[t].a;
    const float* y = a.y + a.step[t].b + column;
    Vec yv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) yv[v] = load(y + std::ptrdiff_t{v} * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = broadcast(row[r][at]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] += bits(x * yv[v] + to_units);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      store_units(units + static_cast<std::int64_t>(r) * a.columns + std::ptrdiff_t{v} * kLanes,
                  acc[r][v]);
}

using NarrowTile = void (*)(const AddOuter&, int);

constexpr int kMaxNarrow = 4;  // largest number of outputs for narrow_tile()
/// Number of SIMD vectors of inputs that narrow_tile() processes at once.
constexpr int kNarrowVectors = 4;

/// Adds the gradients of all examples for a layer with C outputs, so few that SIMD lanes are rows
/// (inputs) instead of columns (outputs): nearly all lanes would be padding otherwise. first: first
/// row. Requires the rows' inputs to be contiguous. a: arguments of the kernel.
template <int C>
void narrow_tile(const AddOuter& a, int first) {
  const Vec to_units = broadcast(kToUnits);
  VecU acc[C][kNarrowVectors];
#pragma GCC unroll 16
  for (int c = 0; c < C; ++c)
#pragma GCC unroll 4
    for (int v = 0; v < kNarrowVectors; ++v) acc[c][v] = VecU{};
  const float* const row = a.x + a.x_row[first];
  for (int t = 0; t < a.terms; ++t) {
    const float* const x = row + a.step[t].a;
    const float* const y = a.y + a.step[t].b;
#pragma GCC unroll 4
    for (int v = 0; v < kNarrowVectors; ++v) {
      const Vec xv = load(x + std::ptrdiff_t{v} * kLanes);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) acc[c][v] += bits(xv * broadcast(y[c]) + to_units);
    }
  }
  const std::uint32_t offset =
      static_cast<std::uint32_t>(a.terms) * static_cast<std::uint32_t>(kToUnitsBits);
  std::int32_t* units = a.units + static_cast<std::int64_t>(first) * a.columns;
  for (int v = 0; v < kNarrowVectors; ++v)
    for (int lane = 0; lane < kLanes; ++lane, units += a.columns)
      for (int c = 0; c < C; ++c)
        units[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(units[c]) +
                                             (acc[c][v][lane] - offset));
}

/// Adds the gradients of a layer with few outputs by narrow_tile(), for the rows that fill whole
/// tiles, and returns their number; 0 if the layer has more outputs, or the rows' inputs are not
/// contiguous.
int add_narrow(const AddOuter& a) {
  static constexpr NarrowTile kTiles[kMaxNarrow] = {&narrow_tile<1>, &narrow_tile<2>,
                                                    &narrow_tile<3>, &narrow_tile<4>};
  if (a.outputs > kMaxNarrow) return 0;
  const int last = a.rows / (kNarrowVectors * kLanes) * (kNarrowVectors * kLanes);
  for (int m = 1; m < last; ++m)
    if (a.x_row[m] != a.x_row[0] + m) return 0;
  for (int first = 0; first < last; first += kNarrowVectors * kLanes)
    kTiles[a.outputs - 1](a, first);
  return last;
}

void add_transformed(const AddOuter& a) {
  const Vec to_units = broadcast(kToUnits);
  const Vec min_sum = broadcast(kMinSum);
  const Vec max_sum = broadcast(kMaxSum);
  for (int m = 0; m < a.rows; ++m)
    for (int n = 0; n < a.columns; n += kLanes) {
      const std::int64_t at = static_cast<std::int64_t>(m) * a.columns + n;
      const Vec mean = load(a.transform.mean + at);
      const Vec inverse = load(a.transform.inverse + at);
      VecU acc = load_units(a.units + at);
      for (int t = 0; t < a.terms; ++t) {
        const Vec g = broadcast(a.x[a.x_row[m] + a.step[t].a]) * load(a.y + a.step[t].b + n);
        const Vec w = (g - mean) * inverse;
        acc += bits(min(max(w * broadcast(a.scale[t]) + to_units, min_sum), max_sum)) -
               static_cast<std::uint32_t>(kToUnitsBits);
      }
      store_units(a.units + at, acc);
    }
}

}  // namespace

void add_outer(const AddOuter& a) {
  if (a.rows == 0 || a.terms == 0) return;
  if (a.transform.mean != nullptr) return add_transformed(a);
  const int done = add_narrow(a);
  if (done == a.rows) return;
  AddOuter rest = a;
  rest.units += static_cast<std::int64_t>(done) * a.columns;
  rest.x_row += done;
  rest.rows -= done;
  for_each_column_block<kShapes>(rest.columns, [&]<int V, int max_rows>(int column) {
    for_each_tile<max_rows>(
        rest.rows, []<int R>() { return &tile<R, V>; },
        [&](auto* add_tile, int first) { add_tile(rest, first, column); });
  });
}

}  // namespace cudp::CUDP_SIMD
