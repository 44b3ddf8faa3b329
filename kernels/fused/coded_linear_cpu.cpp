// Step of a linear model over rows of a CodedRows table: scores, clip factors, and the sum of
// clipped gradients. A row costs some tens of instructions: for each code, a load and an addition
// to compute the score, and a load and an addition to add the gradient. Rows are processed in
// groups of kLanes. Their scores are independent, so loads of several rows overlap. Everything that
// follows from a score (loss, norm, clip factor, rounding) is computed for the whole group in SIMD
// vectors. Then the rounded gradient of each row is added to the sums of integers. Rows are
// scattered over a large table, so the rows of later groups are prefetched.
#include "kernels/common/coded_row.hpp"
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/fused/linear_group.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Number of rows by which prefetching is ahead of the row that is being computed.
constexpr int kAhead = 32;

// The numbers of a row are processed in vectors of at most eight, because a row has few.
constexpr int kPart = kLanes < 8 ? kLanes : 8;
using Part = float __attribute__((vector_size(kPart * 4)));
using PartU = std::uint32_t __attribute__((vector_size(kPart * 4)));

template <class V, class T>
CUDP_INLINE V load_as(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
/// Returns the n floats at address p, 0 < n <= kPart, followed by zeros. Does not read memory after
/// the n floats.
CUDP_INLINE Part load_first(const std::uint8_t* p, int n) {
#if defined(__AVX512F__)
  return (Part)_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << n) - 1u), p);
#elif defined(__AVX2__)
  const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  return (Part)_mm256_maskload_ps(reinterpret_cast<const float*>(p),
                                  _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes));
#else
  Part part{};
  for (int i = 0; i < n; ++i) part[i] = load_as<float>(p + std::int64_t{i} * 4);
  return part;
#endif
}

/// Adds up the lanes of each of kLanes vectors: sums[i] = sum of the lanes of parts[i].
CUDP_INLINE void sum_lanes(const Part* parts, float* sums) {
#if defined(__AVX2__)
  for (int i = 0; i < kLanes; i += kPart) {
    const auto pair = [&](int j) {
      return _mm256_hadd_ps((__m256)parts[i + j], (__m256)parts[i + j + 1]);
    };
    const __m256 low = _mm256_hadd_ps(pair(0), pair(2));
    const __m256 high = _mm256_hadd_ps(pair(4), pair(6));
    _mm256_storeu_ps(sums + i, _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                                             _mm256_permute2f128_ps(low, high, 0x31)));
  }
#else
  for (int i = 0; i < kLanes; ++i) {
    sums[i] = parts[i][0];
    for (int lane = 1; lane < kPart; ++lane) sums[i] += parts[i][lane];
  }
#endif
}

/// A group of kLanes rows in compact form, with the values that are computed for each row.
struct Group : LinearGroup {
  const std::uint8_t* row[kLanes];
  Part products[kLanes];
  alignas(64) float numbers[kLanes];  ///< part of each row's score that comes from its numbers
  alignas(64) float codes[kLanes];    ///< part of each row's score that comes from its codes
};

template <class Code>
CUDP_INLINE void prefetch(const CodedLinear& a, const CodedRow<Code>& of, int from, int to) {
  to = to < a.of.count ? to : a.of.count;
  for (int e = from; e < to; ++e) {
    const std::uint8_t* const row = of.row(a.of.examples[e]);
    __builtin_prefetch(row);
    __builtin_prefetch(row + of.row_bytes - 1);
    prefetch_label(a.of, a.of.examples[e]);
  }
}

template <class Code>
CUDP_INLINE void score(const CodedLinear& a, const CodedRow<Code>& of, int first, int n, Group& g) {
  const float* const weights = a.weights;
  const int whole = of.numbers / kPart * kPart;
  const int left = of.numbers - whole;
  for (int e = 0; e < n; ++e) {
    const std::uint32_t example = a.of.examples[first + e];
    const std::uint8_t* const row = of.row(example);
    g.row[e] = row;
    Part products{};
    for (int k = 0; k < whole; k += kPart)
      products += load_as<Part>(row + std::int64_t{k} * 4) * load_as<Part>(a.number_weights + k);
    if (left > 0)
      products +=
          load_first(row + std::int64_t{whole} * 4, left) * load_as<Part>(a.number_weights + whole);
    g.products[e] = products;
    float one = 0.0f;
    float other = 0.0f;
    int k = 0;
    for (; k + 4 <= of.codes; k += 4) {
      one += weights[of.code(row, k)];
      other += weights[of.code(row, k + 1)];
      one += weights[of.code(row, k + 2)];
      other += weights[of.code(row, k + 3)];
    }
    for (; k < of.codes; ++k) one += weights[of.code(row, k)];
    g.codes[e] = one + other;
    g.square[e] = of.square(row);
    g.label[e] = label_of(a.of, example);
  }
  sum_lanes(g.products, g.numbers);
}

template <class Code>
CUDP_INLINE void add(const CodedLinear& a, const CodedRow<Code>& of, int n, const Group& g) {
  std::int32_t* const units = a.units;
  const int whole = of.numbers / kPart * kPart;
  const int left = of.numbers - whole;
  for (int e = 0; e < n; ++e) {
    if (g.factor[e] == 0.0f) continue;  // the row's numbers may be NaN
    const std::uint8_t* const row = g.row[e];
    const std::int32_t unit = g.unit[e];
    int k = 0;
    for (; k + 4 <= of.codes; k += 4) {
      units[of.code(row, k)] += unit;
      units[of.code(row, k + 1)] += unit;
      units[of.code(row, k + 2)] += unit;
      units[of.code(row, k + 3)] += unit;
    }
    for (; k < of.codes; ++k) units[of.code(row, k)] += unit;
    const Part scaled = g.scaled[e] - Part{};
    const auto add_numbers = [&](int i, Part x) {
      PartU sum = load_as<PartU>(a.number_units + i);
      sum += (PartU)(x * scaled + kToUnits) - static_cast<std::uint32_t>(kToUnitsBits);
      __builtin_memcpy(a.number_units + i, &sum, sizeof sum);
    };
    for (int i = 0; i < whole; i += kPart) add_numbers(i, load_as<Part>(row + std::int64_t{i} * 4));
    if (left > 0) add_numbers(whole, load_first(row + std::int64_t{whole} * 4, left));
  }
}

template <class Code>
void run(const CodedLinear& a) {
  const CodedRow<Code> of(a.rows);
  GroupFacts facts;
  Group g = {};
  std::uint32_t bias_unit = 0;
  prefetch(a, of, 0, kAhead);
  for (int first = 0; first < a.of.count; first += kLanes) {
    const int n = a.of.count - first < kLanes ? a.of.count - first : kLanes;
    prefetch(a, of, first + kAhead, first + kAhead + kLanes);
    score(a, of, first, n, g);
    const Vec z = (load(g.numbers) + load(g.codes)) + broadcast(a.of.bias);
    weigh(a.of, n, z, g, facts);
    for (int e = 0; e < n; ++e) bias_unit += static_cast<std::uint32_t>(g.unit[e]);
    add(a, of, n, g);
  }
  finish(a.of, bias_unit, facts);
}

}  // namespace

void coded_linear(const CodedLinear& a) {
  if (a.rows.code_bytes == 1) return run<std::uint8_t>(a);
  if (a.rows.code_bytes == 2) return run<std::uint16_t>(a);
  run<std::uint32_t>(a);
}

}  // namespace cudp::CUDP_SIMD
