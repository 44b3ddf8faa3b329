#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/products/cpu_tiles.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp::CUDP_SIMD {
namespace {

// Shapes of tiles of the output, in descending width. The sums of a tile, `vectors` vectors of b
// and one broadcast number of a must fit into the SIMD registers together. Eight independent sums
// hide the latency of FMA, of which two can start per cycle; a tile has 10 or more. The last shape
// must be at most 16 columns wide.
#if defined(__AVX512F__)
constexpr TileShape kShapes[] = {{4, 6}, {2, 12}, {1, 14}};
#elif defined(__AVX2__)
constexpr TileShape kShapes[] = {{2, 6}};
#else
constexpr TileShape kShapes[] = {{2, 5}};
#endif

/// Number of rows of `a` whose addresses fit into the general registers. If a tile has more rows,
/// all their addresses are read from memory for every product: GCC would keep the extra ones in
/// vector registers, and moving them from there competes with the products.
constexpr int kRowsInRegisters = 8;

/// Returns the number of rows of b, each `vectors` SIMD vectors wide, that fit into half of a
/// first-level cache of 48 KB.
constexpr int block_terms(int vectors) { return 24 * 1024 / (vectors * kLanes * 4); }

template <int R, int V>
void tile(const float* a, const float* b, float* out, const std::int32_t* a_row,
          const std::int32_t* out_row, const std::int64_t* out_vector, const GemmStep* step,
          int terms, const float* bias, GemmStart start) {
  Vec acc[R][V];
  const float* row[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    row[r] = a + a_row[r];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      acc[r][v] = start == GemmStart::bias ? load(bias + std::ptrdiff_t{v} * kLanes) : Vec{};
  }
  for (int t = 0; t < terms; ++t) {
    const std::int64_t ia = step[t].a;
    const float* bt = b + step[t].b;
    if constexpr (R > kRowsInRegisters) __asm__("" : "+m"(row));
    Vec bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) bv[v] = load(bt + std::ptrdiff_t{v} * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = broadcast(row[r][ia]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] += x * bv[v];
    }
  }
  // Stores are sequential, because two may go to the same address.
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* o = out + out_row[r] + out_vector[v];
      store(o, start == GemmStart::out ? load(o) + acc[r][v] : acc[r][v]);
    }
}

}  // namespace

void gather_gemm(const GatherGemm& g) {
  if (g.rows <= 0) return;
  for_each_column_block<kShapes>(g.columns, [&]<int V, int max_rows>(int column) {
    const int block = block_terms(V);
    std::int64_t out_vector[V];
    for (int v = 0; v < V; ++v) {
      const int n = column + v * kLanes;
      out_vector[v] = g.out_block != nullptr ? g.out_block[n / 16] + n % 16 : n;
    }
    const float* const bias = g.bias + (g.bias != nullptr ? column : 0);
    int t = 0;
    do {  // runs at least once, so that a product without summands still writes its start
      const int terms = g.terms - t < block ? g.terms - t : block;
      const GemmStart start = t == 0 ? g.start : GemmStart::out;
      for_each_tile<max_rows>(
          g.rows, []<int R>() { return &tile<R, V>; },
          [&](auto* sum_tile, int first) {
            sum_tile(g.a, g.b + column, g.out, g.a_row + first, g.out_row + first, out_vector,
                     g.step + t, terms, bias, start);
          });
      t += terms;
    } while (t < g.terms);
  });
}

void column_sum(const ColumnSum& c) {
  for (int column = 0; column < c.columns; column += kLanes) {
    const float* b = c.b + column;
    Vec s0{};
    Vec s1{};
    int t = 0;
    for (; t + 2 <= c.terms; t += 2) {
      s0 += load(b + c.step[t].b);
      s1 += load(b + c.step[t + 1].b);
    }
    if (t < c.terms) s0 += load(b + c.step[t].b);
    store(c.out + column, s0 + s1);
  }
}

}  // namespace cudp::CUDP_SIMD
