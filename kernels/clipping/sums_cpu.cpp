#include "kernels/clipping/sums.hpp"
#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"

namespace cudp::CUDP_SIMD {

void add_scaled(const AddScaled& a) {
  const Vec factor = broadcast(a.factor);
  for (std::int64_t i = 0; i < a.n; i += kLanes)
    store(a.acc + i, load(a.acc + i) + factor * load(a.g + i));
}

constexpr std::int64_t kPair = 2 * std::int64_t{kLanes};

/// |g|^2 of n floats, n a multiple of 16: 64 / kLanes interleaved sums, then pairwise.
float square_sum(const float* g, std::int64_t n) {
  Vec s0{};
  Vec s1{};
  std::int64_t i = 0;
  for (; i + kPair <= n; i += kPair) {
    const Vec a = load(g + i);
    const Vec b = load(g + i + kLanes);
    s0 += a * a;
    s1 += b * b;
  }
  if (i < n) {
    const Vec a = load(g + i);
    s0 += a * a;
  }
  return reduce_add(s0 + s1);
}

float transformed_square_sum(const float* g, const Transform& t, std::int64_t n) {
  Vec s0{};
  Vec s1{};
  const auto w = [&](std::int64_t i) {
    return (load(g + i) - load(t.mean + i)) * load(t.inverse + i);
  };
  std::int64_t i = 0;
  for (; i + kPair <= n; i += kPair) {
    const Vec a = w(i);
    const Vec b = w(i + kLanes);
    s0 += a * a;
    s1 += b * b;
  }
  if (i < n) {
    const Vec a = w(i);
    s0 += a * a;
  }
  return reduce_add(s0 + s1);
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

void round_to_grid(const RoundToGrid& s) {
  constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to an integer
  if (s.transform.mean != nullptr)
    for (std::int64_t i = 0; i < s.n; ++i)
      s.acc[i] = (s.acc[i] - s.factor_sum * s.transform.mean[i]) * s.transform.inverse[i];
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double units = static_cast<double>(s.acc[i]) * s.inverse_grid + kRound;
    s.total[i] += units - kRound;
    s.acc[i] = 0.0f;
  }
}

void reduce_sums(const ReduceSums& c) {
  for (std::int64_t i = 0; i < c.n; ++i) {
    double sum = 0.0;
    for (int k = 0; k < c.count; ++k) {
      sum += c.totals[k][i];
      c.totals[k][i] = 0.0;
    }
    c.out[i] = static_cast<float>(sum * c.grid);
  }
}

}  // namespace cudp::CUDP_SIMD
