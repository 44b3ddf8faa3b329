#include "kernels/common/coded_row.hpp"
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/products/coded_product.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Numbers of SIMD vectors in a narrow tile, of 16 output columns, and in a wide tile, of 64
/// columns (32 if a vector has 4 lanes). The sums of a tile stay in registers. The weights of a
/// wide tile, 64 columns of some hundred features, stay in the first-level cache while all examples
/// are processed.
constexpr int kNarrow = 16 / kLanes;
constexpr int kWide = kLanes == 4 ? 2 * kNarrow : 4 * kNarrow;

/// Number of table rows that are decoded at a time.
constexpr int kRows = 64;
/// Maximum number of non-zero features of a row that are decoded at a time.
constexpr int kParts = 32;
/// Maximum number of codes per row that are processed at a time.
constexpr int kCodes = 16;

/// Up to kParts consecutive non-zero features of one row: their values x, in the order of the
/// features, and the offsets of their weights.
struct Parts {
  int count = 0;
  float x[kParts];
  /// offset of the feature's row of weights, from the start of the weights
  std::int64_t offset[kParts];
};

/// Progress of decoding a row: number of its codes and of its numeric features so far.
struct Position {
  int code = 0;
  int number = 0;
};

/// Decodes the next features of `row`, at most kParts of them, from `position` on, into `parts`.
/// Advances `position`. The value of a code's feature is 1. of: how rows are stored. Code: type of
/// a stored code.
template <class Code>
void decode_features(const CodedProduct& a, const CodedRow<Code>& of, const std::uint8_t* row,
                     Position& position, Parts& parts) {
  int n = 0;
  const auto put = [&](float x, std::int64_t feature) {
    parts.x[n] = x;
    parts.offset[n] = feature * a.columns;
    ++n;
  };
  int& k = position.code;
  int& next = position.number;
  while (n < kParts && (k < of.codes || next < of.numbers)) {
    const std::int64_t code = k < of.codes ? of.code(row, k) : a.rows.features;
    if (k < of.codes && code == a.rows.features) {
      ++k;
    } else if (next < of.numbers && of.number_feature[next] < code) {
      put(of.number(row, next), of.number_feature[next]);
      ++next;
    } else {
      put(1.0f, code);
      ++k;
    }
  }
  parts.count = n;
}

/// Computes V SIMD vectors of a layer's outputs, from `column` on, for a.count rows: adds the
/// features in `parts`, times their weights. The sums start from the bias if from_bias, otherwise
/// from the numbers in out.
template <int V>
void product_tile(const CodedProduct& a, const Parts* parts, bool from_bias, int column) {
  const float* const weights = a.weights + column;
  for (int e = 0; e < a.count; ++e, ++parts) {
    float* const out = a.out + e * a.out_stride + column;
    const float* const start = from_bias ? a.bias + column : out;
    Vec sum[V];
    CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] = load(start + std::ptrdiff_t{v} * kLanes);
    for (int i = 0; i < parts->count; ++i) {
      const Vec x = broadcast(parts->x[i]);
      const float* const w = weights + parts->offset[i];
      CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] += x * load(w + std::ptrdiff_t{v} * kLanes);
    }
    CUDP_UNROLL for (int v = 0; v < V; ++v) store(out + std::ptrdiff_t{v} * kLanes, sum[v]);
  }
}

/// The examples in which one one-hot feature is 1: their indices in the tile are *begin to *(end -
/// 1).
struct Run {
  std::int64_t feature;
  const std::uint8_t* begin;
  const std::uint8_t* end;
};

/// The examples of a tile (at most kRows) grouped by the one-hot features that are 1 in their rows;
/// an example is in one group (Run) per code. For at most kCodes codes per row. term: the indices
/// of the examples, group by group.
struct Runs {
  int count;
  Run run[kRows * kCodes];
  std::uint8_t term[kRows * kCodes];
};

/// Groups the examples of a tile by their one-hot features, for codes number k to end - 1 of their
/// rows, and writes the groups to `runs`. A code that stands for no feature has no group. a:
/// arguments of the kernel. of: how rows are stored. Code: type of a stored code.
template <class Code>
void sort(const AddCodedOuter& a, const CodedRow<Code>& of, int k, int end, Runs& runs) {
  runs.count = 0;
  std::uint8_t* to = runs.term;
  for (; k < end; ++k) {
    std::int64_t code[kRows];
    std::uint8_t left[kRows];
    int n = 0;
    for (int t = 0; t < a.terms; ++t) {
      code[t] = of.code(of.row(a.examples[t]), k);
      left[n] = static_cast<std::uint8_t>(t);
      n += code[t] != a.rows.features;
    }
    while (n > 0) {
      Run& run = runs.run[runs.count++];
      run.feature = code[left[0]];
      run.begin = to;
      int kept = 0;
      for (int i = 0; i < n; ++i) {
        const std::uint8_t t = left[i];
        const bool same = code[t] == run.feature;
        *to = t;
        to += same;
        left[kept] = t;
        kept += !same;
      }
      run.end = to;
      n = kept;
    }
  }
}

/// Returns the number to subtract from a sum of `terms` rounded floats, each added as the bit
/// pattern of v + kToUnits: `terms` times kToUnitsBits. The difference is the sum of the rounded
/// numbers.
CUDP_INLINE VecU beyond_units(int terms) {
  return broadcast_u(static_cast<std::uint32_t>(terms) * static_cast<std::uint32_t>(kToUnitsBits));
}

template <int V>
CUDP_INLINE void add_units(std::int32_t* units, const VecU (&sum)[V], int terms) {
  CUDP_UNROLL for (int v = 0; v < V; ++v) {
    auto* const at = reinterpret_cast<std::uint32_t*>(units) + std::ptrdiff_t{v} * kLanes;
    store_u(at, load_u(at) + (sum[v] - beyond_units(terms)));
  }
}

/// Adds the gradients of V SIMD vectors of columns, from `column` on: of the weights for the codes
/// in `runs` and, if `first`, of the bias and of the weights for numeric features. The sum for one
/// feature stays in registers, so each number of a.units is read and written once per feature. a:
/// arguments of the kernel. of: how rows are stored. Code: type of a stored code.
template <int V, class Code>
void add_tile(const AddCodedOuter& a, const CodedRow<Code>& of, const Runs& runs, bool first,
              int column) {
  // Copies y, because rows of y may be a multiple of a page apart, and few such rows fit into the
  // cache together.
  constexpr std::ptrdiff_t kColumns = std::ptrdiff_t{V} * kLanes;
  alignas(64) float y[kRows * kColumns];
  VecU sum[V] = {};
  CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] = VecU{};
  for (int t = 0; t < a.terms; ++t) CUDP_UNROLL for (int v = 0; v < V; ++v) {
      const Vec one = load(a.y + a.y_row[t] + column + std::ptrdiff_t{v} * kLanes);
      store(y + t * kColumns + std::ptrdiff_t{v} * kLanes, one);
      sum[v] += (VecU)(one + broadcast(kToUnits));
    }
  if (first) add_units(a.bias_units + column, sum, a.terms);
  for (const Run* run = runs.run; run < runs.run + runs.count; ++run) {
    CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] = VecU{};
    for (const std::uint8_t* t = run->begin; t < run->end; ++t)
      CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] +=
          (VecU)(load(y + *t * kColumns + std::ptrdiff_t{v} * kLanes) + broadcast(kToUnits));
    add_units(a.units + run->feature * a.columns + column, sum,
              static_cast<int>(run->end - run->begin));
  }
  if (!first) return;
  for (int k = 0; k < of.numbers; ++k) {
    CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] = VecU{};
    for (int t = 0; t < a.terms; ++t) {
      const Vec x = broadcast(of.number(of.row(a.examples[t]), k));
      CUDP_UNROLL for (int v = 0; v < V; ++v) sum[v] +=
          (VecU)(x * load(y + t * kColumns + std::ptrdiff_t{v} * kLanes) + broadcast(kToUnits));
    }
    add_units(a.units + std::int64_t{of.number_feature[k]} * a.columns + column, sum, a.terms);
  }
}

/// Calls with<V>(column) for tiles of V SIMD vectors that together cover `columns`, a multiple of
/// 16. With: type of the function `with`.
template <class With>
CUDP_INLINE void for_each_tile(int columns, With with) {
  int column = 0;
  for (; columns - column >= kWide * kLanes; column += kWide * kLanes)
    with.template operator()<kWide>(column);
  switch ((columns - column) / 16) {
    case 3:
      return with.template operator()<3 * kNarrow>(column);
    case 2:
      return with.template operator()<2 * kNarrow>(column);
    case 1:
      return with.template operator()<kNarrow>(column);
    default:
      return;
  }
}

/// Computes the output of a layer that has one: adds the same summands in the same order as
/// product_tile().
template <class Code>
void product_of_one(const CodedProduct& a, const CodedRow<Code>& of) {
  const int columns = a.columns;
  for (int e = 0; e < a.count; ++e) {
    const std::uint8_t* const row = of.row(a.examples[e]);
    float sum = a.bias[0];
    int next = 0;
    const auto add_numbers = [&](std::int64_t before) {
      for (; next < of.numbers && of.number_feature[next] < before; ++next)
        sum += of.number(row, next) * a.weights[std::int64_t{of.number_feature[next]} * columns];
    };
    for (int k = 0; k < of.codes; ++k) {
      const std::int64_t code = of.code(row, k);
      if (code == a.rows.features) continue;
      add_numbers(code);
      sum += a.weights[code * columns];
    }
    add_numbers(a.rows.features);
    float* const out = a.out + e * a.out_stride;
    for (int n = 0; n < columns; n += kLanes) store(out + n, Vec{});
    out[0] = sum;
  }
}

template <class Code>
void product(CodedProduct a) {
  const CodedRow<Code> of(a.rows);
  if (a.has_one_output) return product_of_one(a, of);
  Parts parts[kRows];
  for (int left = a.count; left > 0; left -= kRows) {
    a.count = left < kRows ? left : kRows;
    Position position[kRows];
    bool more = true;
    for (bool from_bias = true; more; from_bias = false) {
      more = false;
      for (int e = 0; e < a.count; ++e) {
        decode_features(a, of, of.row(a.examples[e]), position[e], parts[e]);
        more = more || position[e].code < of.codes || position[e].number < of.numbers;
      }
      for_each_tile(a.columns,
                    [&]<int V>(int column) { product_tile<V>(a, parts, from_bias, column); });
    }
    a.examples += a.count;
    a.out += a.count * a.out_stride;
  }
}

template <class Code>
void add(AddCodedOuter a) {
  const CodedRow<Code> of(a.rows);
  Runs runs;
  for (int left = a.terms; left > 0; left -= kRows, a.examples += kRows, a.y_row += kRows) {
    a.terms = left < kRows ? left : kRows;
    int k = 0;
    do {
      const int end = of.codes - k < kCodes ? of.codes : k + kCodes;
      sort(a, of, k, end, runs);
      for_each_tile(a.columns,
                    [&]<int V>(int column) { add_tile<V>(a, of, runs, k == 0, column); });
      k = end;
    } while (k < of.codes);
  }
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
