// Step of a linear model over dense rows, in groups of kLanes: scores, clip factors, and the sum of
// clipped gradients. One pass over a row multiplies it by the weights and sums its squares.
// Everything that follows from a score is computed for the group in SIMD vectors. Then every
// register of the sum receives the contributions of all rows of the group before the next register
// is loaded. The rows of the next group are prefetched meanwhile.
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/fused/linear_group.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Number of cache lines that are prefetched from the start of a row; the hardware prefetches the
/// rest.
constexpr std::int64_t kLines = 16;
constexpr std::int64_t kLine = 64;  ///< size of a cache line [bytes]
/// Number of floats whose squares are added in float32 before the sum is added to |x|^2; it bounds
/// the rounding error (kCpuArithmetic.norm_block). A multiple of 2 kLanes.
constexpr int kNormBlock = 1024;

/// Makes a SIMD register of the n numbers number(0), ..., number(n - 1), 0 < n < kLanes, followed
/// by zeros. number() is not called for larger arguments. Number: type of the function number().
template <class Number>
CUDP_INLINE Vec first_numbers(int n, Number number) {
  float x[kLanes] = {};
  for (int i = 0; i < n; ++i) x[i] = number(i);
  return load(x);
}

/// Reads rows of features that are stored as floats. numbers(x) loads kLanes features from address
/// x; first(x, n) loads n of them, followed by zeros.
struct FloatRows {
  explicit FloatRows(const DenseLinear& a) : rows(a.floats), features(a.features) {}
  const float* row(std::uint32_t example) const { return rows + std::int64_t{example} * features; }
  Vec numbers(const float* x) const { return load(x); }
  Vec first(const float* x, int n) const {
#if defined(__AVX512F__)
    return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), x);
#else
    return first_numbers(n, [=](int i) { return x[i]; });
#endif
  }

  const float* rows;
  std::int64_t features;
};

/// Reads rows of features that are stored as bytes; a feature is scale * byte + shift. It has the
/// same functions as FloatRows.
struct ByteRows {
  explicit ByteRows(const DenseLinear& a)
      : rows(a.bytes), features(a.features), scale(a.scale), shift(a.shift) {}
  const std::uint8_t* row(std::uint32_t example) const {
    return rows + std::int64_t{example} * features;
  }
  Vec numbers(const std::uint8_t* x) const {
    using Bytes = std::uint8_t __attribute__((vector_size(kLanes)));
    Bytes b;
    __builtin_memcpy(&b, x, sizeof b);
    return to_float(__builtin_convertvector(b, VecI)) * scale + shift;
  }
  Vec first(const std::uint8_t* x, int n) const {
    return first_numbers(n, [&](int i) { return static_cast<float>(x[i]) * scale + shift; });
  }

  const std::uint8_t* rows;
  std::int64_t features;
  float scale;
  float shift;
};

/// kLanes rows that are processed together: their addresses, and the values that are computed for
/// each row before any of them is added to the gradient sum. Rows: FloatRows or ByteRows, by the
/// type of the stored features.
template <class Rows>
struct Group : LinearGroup {
  decltype(Rows(DenseLinear()).row(0)) row[kLanes];  ///< addresses of the rows
  alignas(64) float score[kLanes];                   ///< w x of each row x, without the bias
};

/// Prefetches the first kLines cache lines of row number e of the call, and its label. Does nothing
/// if e is not less than the number of examples. Rows: FloatRows or ByteRows.
template <class Rows>
CUDP_INLINE void prefetch(const DenseLinear& a, const Rows& rows, int e) {
  if (e >= a.of.count) return;
  const auto* const row = rows.row(a.of.examples[e]);
  const auto bytes = static_cast<std::int64_t>(sizeof *row) * a.features;
  const auto* const line = reinterpret_cast<const char*>(row);
  for (std::int64_t i = 0; i < bytes && i < kLines * kLine; i += kLine)
    __builtin_prefetch(line + i);
  prefetch_label(a.of, a.of.examples[e]);
}

/// Computes the score w x of a row x, without the bias, and |x|^2, with w = a.weights. Writes the
/// score to *product and |x|^2 to *square. rows: converts the numbers of x to floats. Number: type
/// of these numbers. Rows: FloatRows or ByteRows.
template <class Rows, class Number>
CUDP_INLINE void score(const DenseLinear& a, const Rows& rows, const Number* x, float* product,
                       float* square) {
  const float* const w = a.weights;
  const int whole = a.features / kLanes * kLanes;
  Vec z0{};
  Vec z1{};
  double total = 0.0;
  for (int from = 0; from < whole; from += kNormBlock) {
    const int to = whole - from < kNormBlock ? whole : from + kNormBlock;
    Vec s0{};
    Vec s1{};
    int j = from;
    for (; j + 2 * kLanes <= to; j += 2 * kLanes) {
      const Vec x0 = rows.numbers(x + j);
      const Vec x1 = rows.numbers(x + j + kLanes);
      z0 += x0 * load(w + j);
      z1 += x1 * load(w + j + kLanes);
      s0 += x0 * x0;
      s1 += x1 * x1;
    }
    if (j < to) {
      const Vec x0 = rows.numbers(x + j);
      z0 += x0 * load(w + j);
      s0 += x0 * x0;
    }
    total += static_cast<double>(reduce_add(s0 + s1));
  }
  if (whole < a.features) {
    const Vec last = rows.first(x + whole, a.features - whole);
    z1 += last * load(w + whole);
    total += static_cast<double>(reduce_add(last * last));
  }
  *product = reduce_add(z0 + z1);
  *square = static_cast<float>(total);
}

/// Adds the clipped gradients of a group's n rows to the sum a.units, as integers that count
/// multiples of the sum's grid. Rows whose gradients are not finite are skipped. g: the group, with
/// the values that weigh() has computed for its rows.
template <class Rows>
CUDP_INLINE void add(const DenseLinear& a, const Rows& rows, int n, Group<Rows>& g) {
  int live = 0;
  for (int e = 0; e < n; ++e) {
    if (g.factor[e] == 0.0f) continue;  // the row's numbers may be NaN
    g.row[live] = g.row[e];
    g.scaled[live] = g.scaled[e];
    ++live;
  }
  const std::uint32_t zeros =
      static_cast<std::uint32_t>(kToUnitsBits) * static_cast<unsigned>(live);
  const auto add_columns = [&](int j, auto numbers) {
    VecU sum;
    __builtin_memcpy(&sum, a.units + j, sizeof sum);
    sum -= zeros;
    for (int e = 0; e < live; ++e) sum += bits(numbers(g.row[e] + j) * g.scaled[e] + kToUnits);
    __builtin_memcpy(a.units + j, &sum, sizeof sum);
  };
  const int whole = a.features / kLanes * kLanes;
  for (int j = 0; j < whole; j += kLanes)
    add_columns(j, [&](const auto* x) { return rows.numbers(x); });
  if (whole < a.features)
    add_columns(whole, [&](const auto* x) { return rows.first(x, a.features - whole); });
}

template <class Rows>
void run(const DenseLinear& a) {
  const Rows rows(a);
  GroupFacts facts;
  Group<Rows> g = {};
  std::uint32_t bias_unit = 0;
  for (int e = 0; e < kLanes; ++e) prefetch(a, rows, e);
  for (int first = 0; first < a.of.count; first += kLanes) {
    const int n = a.of.count - first < kLanes ? a.of.count - first : kLanes;
    for (int e = 0; e < n; ++e) {
      prefetch(a, rows, first + kLanes + e);
      const std::uint32_t example = a.of.examples[first + e];
      g.row[e] = rows.row(example);
      g.label[e] = label_of(a.of, example);
      score(a, rows, g.row[e], &g.score[e], &g.square[e]);
    }
    weigh(a.of, n, load(g.score) + broadcast(a.of.bias), g, facts);
    for (int e = 0; e < n; ++e) bias_unit += static_cast<std::uint32_t>(g.unit[e]);
    add(a, rows, n, g);
  }
  finish(a.of, bias_unit, facts);
}

}  // namespace

void dense_linear(const DenseLinear& a) {
  if (a.floats != nullptr) return run<FloatRows>(a);
  run<ByteRows>(a);
}

}  // namespace cudp::CUDP_SIMD
