#include "kernels/common/coded_row.hpp"
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/products/coded_product.hpp"

namespace cudp::CUDP_SIMD {
namespace {

// Vectors of a tile of columns: its sums stay in registers, and its weights, 64 columns of some
// hundred features, in the first-level cache while all examples pass.
constexpr int kWide = kLanes == 4 ? 8 : 64 / kLanes;
constexpr int kNarrow = 16 / kLanes;

CUDP_INLINE VecU load_units(const std::int32_t* p) {
  VecU v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
CUDP_INLINE void store_units(std::int32_t* p, VecU v) { __builtin_memcpy(p, &v, sizeof v); }

/// The integer nearest to v, |v| <= 2^22.
CUDP_INLINE VecU units_of(Vec v) {
  return (VecU)(v + broadcast(kToUnits)) - static_cast<std::uint32_t>(kToUnitsBits);
}
CUDP_INLINE VecU units_of_product(Vec x, Vec y) {
  return (VecU)(x * y + broadcast(kToUnits)) - static_cast<std::uint32_t>(kToUnitsBits);
}

template <int V, class Code>
void product_tile(const CodedProduct& a, int column) {
  const CodedRow<Code> of(a.rows);
  const float* const weights = a.weights + column;
  for (int e = 0; e < a.count; ++e) {
    const std::uint8_t* const row = of.row(a.examples[e]);
    Vec sum[V];
    CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] =
        load(a.bias + column + std::ptrdiff_t{v} * kLanes);
    int next = 0;  // number
    const auto add_numbers_before = [&](std::int64_t feature) {
      for (; next < of.numbers && of.number_feature[next] < feature; ++next) {
        const Vec x = broadcast(of.number(row, next));
        const float* const w = weights + std::int64_t{of.number_feature[next]} * a.columns;
        CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] += x * load(w + std::ptrdiff_t{v} * kLanes);
      }
    };
    for (int k = 0; k < of.codes; ++k) {
      const std::int64_t code = of.code(row, k);
      if (code == a.rows.features) continue;
      add_numbers_before(code);
      const float* const w = weights + code * a.columns;
      CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] += load(w + std::ptrdiff_t{v} * kLanes);
    }
    add_numbers_before(a.rows.features);
    float* const out = a.out + e * a.out_stride + column;
    CUDP_UNROLL for (int v = 0; v < V; ++v) store(out + std::ptrdiff_t{v} * kLanes, sum[v]);
  }
}

template <int V, class Code>
void add_tile(const AddCodedOuter& a, int column) {
  const CodedRow<Code> of(a.rows);
  std::int32_t* const units = a.units + column;
  VecU bias[V];
  CUDP_UNROLL for (int v = 0; v < V; ++v) bias[v] =
      load_units(a.bias_units + column + std::ptrdiff_t{v} * kLanes);
  for (int t = 0; t < a.terms; ++t) {
    const std::uint8_t* const row = of.row(a.examples[t]);
    const float* const y = a.y + a.y_row[t] + column;
    VecU one[V];
    CUDP_UNROLL for (int v = 0; v < V; ++v) {
      one[v] = units_of(load(y + std::ptrdiff_t{v} * kLanes));
      bias[v] += one[v];
    }
    for (int k = 0; k < of.codes; ++k) {
      const std::int64_t code = of.code(row, k);
      if (code == a.rows.features) continue;
      std::int32_t* const to = units + code * a.columns;
      CUDP_UNROLL for (int v = 0; v < V; ++v) {
        std::int32_t* const at = to + std::ptrdiff_t{v} * kLanes;
        store_units(at, load_units(at) + one[v]);
      }
    }
    for (int k = 0; k < of.numbers; ++k) {
      std::int32_t* const to = units + std::int64_t{of.number_feature[k]} * a.columns;
      const Vec x = broadcast(of.number(row, k));
      CUDP_UNROLL for (int v = 0; v < V; ++v) {
        std::int32_t* const at = to + std::ptrdiff_t{v} * kLanes;
        store_units(at, load_units(at) + units_of_product(x, load(y + std::ptrdiff_t{v} * kLanes)));
      }
    }
  }
  CUDP_UNROLL for (int v = 0; v < V; ++v)
      store_units(a.bias_units + column + std::ptrdiff_t{v} * kLanes, bias[v]);
}

template <class Code>
void product(const CodedProduct& a) {
  int column = 0;
  for (; a.columns - column >= kWide * kLanes; column += kWide * kLanes)
    product_tile<kWide, Code>(a, column);
  for (; column < a.columns; column += kNarrow * kLanes) product_tile<kNarrow, Code>(a, column);
}

template <class Code>
void add(const AddCodedOuter& a) {
  int column = 0;
  for (; a.columns - column >= kWide * kLanes; column += kWide * kLanes)
    add_tile<kWide, Code>(a, column);
  for (; column < a.columns; column += kNarrow * kLanes) add_tile<kNarrow, Code>(a, column);
}

}  // namespace

void coded_product(const CodedProduct& a) {
  if (a.rows.code_bytes == 1) return product<std::uint8_t>(a);
  if (a.rows.code_bytes == 2) return product<std::uint16_t>(a);
  product<std::uint32_t>(a);
}

void add_coded_outer(const AddCodedOuter& a) {
  if (a.rows.code_bytes == 1) return add<std::uint8_t>(a);
  if (a.rows.code_bytes == 2) return add<std::uint16_t>(a);
  add<std::uint32_t>(a);
}

}  // namespace cudp::CUDP_SIMD
