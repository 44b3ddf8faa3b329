#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/step/sums.hpp"

namespace cudp::CUDP_SIMD {

void add_scaled(const AddScaled& a) {
  const Vec factor = broadcast(a.factor);
  for (std::int64_t i = 0; i < a.n; i += kLanes)
    store(a.acc + i, load(a.acc + i) + factor * load(a.g + i));
}

/// Number of floats in two SIMD registers.
constexpr std::int64_t kPair = 2 * std::int64_t{kLanes};

/// Number of floats whose squares are added in float32 (in two SIMD registers) before the sum is
/// added in double to a squared norm. It bounds the rounding error of squared norms.
constexpr std::int64_t kNormBlock = 1024;

/// Returns the sum of the squares of n numbers. w(i) returns a SIMD vector of the numbers from
/// index i on. W: type of the function w.
template <class W>
CUDP_INLINE float sum_of_squares(std::int64_t n, const W& w) {
  double total = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    const std::int64_t end = begin + kNormBlock < n ? begin + kNormBlock : n;
    Vec s0{};
    Vec s1{};
    std::int64_t i = begin;
    for (; i + kPair <= end; i += kPair) {
      const Vec a = w(i);
      const Vec b = w(i + kLanes);
      s0 += a * a;
      s1 += b * b;
    }
    if (i < end) {
      const Vec a = w(i);
      s0 += a * a;
    }
    total += static_cast<double>(reduce_add(s0 + s1));
  }
  return static_cast<float>(total);
}

float square_sum(const float* g, std::int64_t n) {
  return sum_of_squares(n, [&](std::int64_t i) { return load(g + i); });
}

float transformed_square_sum(const float* g, const Transform& t, std::int64_t n) {
  return sum_of_squares(
      n, [&](std::int64_t i) { return (load(g + i) - load(t.mean + i)) * load(t.inverse + i); });
}

void square_numbers(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Vec a = load(x + i);
    store(y + i, a * a);
  }
}

TransformedDenseSums transformed_dense(const TransformedDense& a) {
  double squares[16] = {};
  double products[16] = {};
  for (int i = 0; i < a.n; i += 16)
    for (int k = 0; k < 16; ++k) {
      const double dy = a.dy[i + k];
      squares[k] += dy * dy * static_cast<double>(a.u[i + k]);
      products[k] += dy * static_cast<double>(a.v[i + k]);
    }
  TransformedDenseSums sums{0.0, 0.0};
  for (int k = 0; k < 16; ++k) {
    sums.squares += squares[k];
    sums.products += products[k];
  }
  return sums;
}

void add_rounded(const AddRounded& a) {
  const Vec scale = broadcast(a.scale);
  const Vec to_units = broadcast(kToUnits);
  const Vec min_sum = broadcast(kMinSum);
  const Vec max_sum = broadcast(kMaxSum);
  std::int32_t* const units = a.units;
  const float* const g = a.g;
  const std::int64_t n = a.n;
  const auto add = [&](std::int64_t i, Vec w) {
    VecI sum;
    __builtin_memcpy(&sum, units + i, sizeof sum);
    sum += float_to_bits(min(max(w * scale + to_units, min_sum), max_sum)) - kToUnitsBits;
    __builtin_memcpy(units + i, &sum, sizeof sum);
  };
  const Transform t = a.transform;
  if (t.mean == nullptr)
    for (std::int64_t i = 0; i < n; i += kLanes) add(i, load(g + i));
  else
    for (std::int64_t i = 0; i < n; i += kLanes)
      add(i, (load(g + i) - load(t.mean + i)) * load(t.inverse + i));
}

void flush_units(std::int32_t* units, std::int64_t* totals, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    totals[i] += units[i];
    units[i] = 0;
  }
}

void sum_units(const SumUnits& a) {
  for (std::int64_t i = 0; i < a.n; ++i) {
    std::uint64_t sum = 0;
    for (int k = 0; k < a.count; ++k) {
      sum += static_cast<std::uint64_t>(a.totals[k][i] + a.units[k][i]);
      a.totals[k][i] = 0;
      a.units[k][i] = 0;
    }
    a.out[i] = static_cast<std::int64_t>(sum);
  }
}

}  // namespace cudp::CUDP_SIMD
